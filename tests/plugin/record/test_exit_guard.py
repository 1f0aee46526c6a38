"""Whoever calls ``os._exit`` during a run, and however often: never with status 0 before the run is wound up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from pytest_lmeval.plugin.record import recorder
from pytest_lmeval.plugin.record.recorder import ExitGuard


class Ended(BaseException):
    """What the end of the process is here."""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Provide the statuses with which the process would have ended."""
    statuses: list[int] = []

    def end(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr(os, "_exit", end)
    return statuses


def call(wind_up: Callable[[int], int], ending: threading.RLock | None = None, status: int = 0) -> None:
    with pytest.raises(Ended):
        ExitGuard(wind_up, ending or threading.RLock())(status)


@pytest.mark.parametrize(("status", "expected"), [(0, 3), (5, 5)])
@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_breaks_while_it_winds_up_does_not_come_back(
    ended: list[int], error: type[BaseException], status: int, expected: int
) -> None:
    def wind_up(status: int) -> int:
        raise error(0)

    call(wind_up, status=status)
    assert [expected] == ended


def test_a_call_from_winding_up_ends_at_once_and_not_green(ended: list[int]) -> None:
    def wind_up(status: int) -> int:
        guard(0)

    guard = ExitGuard(wind_up, threading.RLock())
    with pytest.raises(Ended):
        guard(0)
    assert 3 == ended[0]


def test_a_thread_that_the_ending_waits_for_ends_not_green(ended: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_PATIENCE_S", 0.01)
    lock = threading.RLock()
    with lock:
        thread = threading.Thread(target=call, args=(lambda status: 0, lock))
        thread.start()
        thread.join()
    assert [3] == ended


def test_a_forked_child_ends_as_it_likes() -> None:
    guard = ExitGuard(lambda status: 3, threading.RLock())
    child = os.fork()
    if child == 0:
        guard(0)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
