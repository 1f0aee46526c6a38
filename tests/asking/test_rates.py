"""So many requests and tokens a minute, over all processes together."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.asking import pacing
from pytest_lmeval.asking.pacing import RateLimit
from pytest_lmeval.types import Completion, Generate

BURST_S = 2.0


class Clock:
    """Time that passes only where it is waited for."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def virtual(patch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    patch.setattr(pacing, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def moments(adapter: Any, requests: int, share: int = 1, gaps: list[float] | None = None) -> list[float]:
    """Return when each of ``requests`` may go, in seconds from the first; one is wanted after each gap."""
    with pytest.MonkeyPatch.context() as patch:
        clock = virtual(patch)
        limit = RateLimit(AdapterFacts.of(adapter), share, clock.sleep)
        gone: list[float] = []
        for number in range(requests):
            clock.now += gaps[number] if gaps else 0.0
            asyncio.run(limit.acquire(Generate("x" * 40, max_tokens=90)))
            gone.append(clock.now)
        return [moment - gone[0] for moment in gone]


def test_an_adapter_without_limits_waits_for_nothing() -> None:
    assert [0.0] * 50 == moments(object(), 50)


def test_after_a_short_burst_requests_go_at_the_rate() -> None:
    gone = moments(SimpleNamespace(requests_per_minute=600), 60)
    assert 20 == gone.count(0.0)
    gaps = [later - earlier for earlier, later in pairwise(gone[20:])]
    assert pytest.approx([0.1] * 39) == gaps


def test_tokens_are_counted_from_the_prompt_and_what_may_be_answered() -> None:
    # 40 characters and 90 tokens: 100 tokens a request, 10 a second.
    gone = moments(SimpleNamespace(tokens_per_minute=60_000), 40)
    assert 20 == gone.count(0.0)
    assert pytest.approx(2.0) == gone[-1]


def test_the_tighter_of_both_limits_holds() -> None:
    slow = moments(SimpleNamespace(requests_per_minute=60, tokens_per_minute=60_000), 30)
    assert pytest.approx(28.0) == slow[-1]


@pytest.mark.parametrize("share", [2, 3])
def test_each_process_takes_its_part_of_the_rate(share: int) -> None:
    adapter = SimpleNamespace(requests_per_minute=60 * share)
    assert moments(SimpleNamespace(requests_per_minute=60), 10) == moments(adapter, 10, share)


@given(st.floats(30, 3000), st.lists(st.one_of(st.just(0.0), st.floats(0, 5)), min_size=1, max_size=60))
def test_no_stretch_of_time_sees_more_than_the_rate_and_a_burst(per_minute: float, gaps: list[float]) -> None:
    gone = moments(SimpleNamespace(requests_per_minute=per_minute), len(gaps), gaps=gaps)
    burst = max(1.0, per_minute / 60 * BURST_S)
    for first, start in enumerate(gone):
        for last, end in enumerate(gone[first:], start=first):
            assert last - first + 1 <= burst + (end - start) * per_minute / 60 + 1e-6 + 1


@pytest.mark.parametrize(("used", "wait"), [((1000, 1000), 18.0), ((20, 0), 0.0), ((None, None), 0.0)])
def test_the_server_s_own_count_settles_the_estimate(
    monkeypatch: pytest.MonkeyPatch, used: tuple[int | None, int | None], wait: float
) -> None:
    # Room for 200 tokens, 100 of which each request is thought to take.
    clock = virtual(monkeypatch)
    limit = RateLimit(AdapterFacts(tokens_per_minute=6000), 1, clock.sleep)
    request = Generate("x" * 40, max_tokens=90)
    asyncio.run(limit.acquire(request))
    limit.settle(request, Completion("a", prompt_tokens=used[0], completion_tokens=used[1]))
    before = clock.now
    asyncio.run(limit.acquire(request))
    assert pytest.approx(wait + (1.0 if wait else 0.0)) == clock.now - before


def test_a_request_larger_than_the_burst_waits_and_goes() -> None:
    gone = moments(SimpleNamespace(tokens_per_minute=600), 3)
    assert pytest.approx([0.0, 10.0, 20.0]) == gone
