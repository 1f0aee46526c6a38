"""Examples as they run: here, in the loop and in threads, with a time limit, cancelled, at their turn."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

from pytest_lmeval.errors import AdapterTimeout, ScoringError
from pytest_lmeval.functions.example import CURRENT, ExampleState
from pytest_lmeval.functions.lm import LmBase
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.runner import Runner, Running

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    loop = Loop(lambda: None)
    yield loop
    loop.close()


def example(call: Callable[[], Any], repeats: int = 1, **given: Any) -> Running:
    states = [ExampleState("task", "a", number, lambda state, said: None) for number in range(repeats)]
    return Running(call, LmBase(None), states, **given)


def run(loop: Loop, running: Running) -> Running:
    Runner(loop, 2).begin([running])
    assert running.done.wait(PATIENCE_S)
    return running


async def raises_timeout() -> None:
    raise TimeoutError("its own")


async def late_assert() -> None:
    try:
        await asyncio.sleep(PATIENCE_S)
    finally:
        raise AssertionError("too late")


async def waits() -> None:
    await asyncio.sleep(PATIENCE_S)


@pytest.mark.parametrize("call", [late_assert, waits])
def test_a_time_limit_that_has_passed_is_a_timeout_whatever_the_function_made_of_it(
    loop: Loop, call: Callable[[], Any]
) -> None:
    (outcome,) = run(loop, example(call, timeout=0.05)).outcomes
    assert isinstance(outcome.error, AdapterTimeout)
    assert "the function took longer than 0.05 s" in str(outcome.error)


def test_a_time_limit_that_is_not_passed_is_none(loop: Loop) -> None:
    (outcome,) = run(loop, example(raises_timeout, timeout=PATIENCE_S)).outcomes
    assert isinstance(outcome.error, TimeoutError)
    assert not isinstance(outcome.error, AdapterTimeout)


async def returns_text() -> str:
    return "said"


async def returns_number() -> int:
    return 5


def test_what_is_returned_is_the_output_or_the_error_wherever_it_runs(loop: Loop) -> None:
    found = [
        run(loop, example(returns_text)),
        run(loop, example(lambda: "said", in_thread=True)),
        example(lambda: "said"),
    ]
    Runner(loop, 1).run_here(found[-1])
    assert ["said"] * 3 == [running.states[0].output for running in found]
    found = [run(loop, example(returns_number)), run(loop, example(lambda: 5, in_thread=True)), example(lambda: 5)]
    Runner(loop, 1).run_here(found[-1])
    assert [ScoringError] * 3 == [type(running.outcomes[0].error) for running in found]


def test_a_wrapper_that_has_run_its_function_by_then_need_not_be_awaited(loop: Loop) -> None:
    running = example(lambda: running.states[0].score("ran", 1))
    (outcome,) = run(loop, running).outcomes
    assert outcome.error is None
    (outcome,) = run(loop, example(lambda: None)).outcomes
    assert isinstance(outcome.error, ScoringError)


def test_each_repeat_is_an_outcome_and_the_current_example_while_it_runs(loop: Loop) -> None:
    seen: list[ExampleState | None] = []
    running = example(lambda: seen.append(CURRENT.get()), repeats=3)
    Runner(loop, 1).run_here(running)
    assert running.states == seen
    assert running.states == [outcome.state for outcome in running.outcomes]
    assert all(state.has_ended and not state.is_beside for state in running.states)
    assert CURRENT.get() is None


@pytest.mark.parametrize("at_turn", [True, False])
def test_what_begins_at_its_turn_writes_where_any_test_does(loop: Loop, at_turn: bool) -> None:
    running = run(loop, example(returns_text, at_turn=at_turn))
    assert (not at_turn) == running.states[0].is_beside


def test_an_example_that_is_cancelled_before_it_had_a_slot_has_no_outcome(loop: Loop) -> None:
    runner = Runner(loop, 1)
    first, second = example(waits), example(waits)
    runner.begin([first, second])
    assert [] == runner.cancel([second, first], PATIENCE_S)
    assert [] == second.outcomes
    assert first.is_cancelled


def test_threads_are_kept_for_the_next_and_one_that_hangs_holds_up_nobody(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.runner._IDLE_S", PATIENCE_S)
    runner, free, seen = Runner(loop, 2), threading.Event(), list[int]()
    number: ContextVar[int] = ContextVar("number", default=0)

    def notes() -> None:
        seen.append(number.get())
        number.set(1)
        threads.add(threading.get_ident())

    threads: set[int] = set()
    hangs = example(lambda: free.wait(PATIENCE_S), in_thread=True)
    runner.begin([hangs])
    for _ in range(20):
        noted = example(notes, in_thread=True)
        runner.begin([noted])
        assert noted.done.wait(PATIENCE_S)
    assert 1 == len(threads)
    assert not hangs.done.is_set()
    # Each has a context of its own.
    assert [0] * 20 == seen
    free.set()
    assert hangs.done.wait(PATIENCE_S)


def test_as_many_run_at_a_time_as_the_concurrency_says_in_the_order_in_which_they_were_begun(loop: Loop) -> None:
    running: list[int] = []
    most, order = [0], list[int]()

    async def one(number: int) -> None:
        running.append(number)
        order.append(number)
        most.append(len(running))
        await asyncio.sleep(0.001)
        running.remove(number)

    examples = [example(partial(one, number)) for number in range(20)]
    runner = Runner(loop, 3)
    runner.begin(examples[:10])
    runner.begin(examples[10:])
    assert all(each.done.wait(PATIENCE_S) for each in examples)
    assert [*range(20)] == order
    assert 3 == max(most)


def test_code_of_the_package_that_blocks_the_loop_is_not_blamed(loop: Loop) -> None:
    began, ends = threading.Event(), threading.Event()
    left = example(lambda: None)

    async def in_the_package() -> None:
        began.set()
        # Waits for the example, which never begins.
        Runner(loop, 1).cancel([left], PATIENCE_S)

    async def in_the_project() -> None:
        began.set()
        ends.wait(PATIENCE_S)

    def blamed(call: Callable[[], Any], until: Callable[[], None]) -> str:
        began.clear()
        running = loop.submit(call())
        assert began.wait(PATIENCE_S)
        time.sleep(0.1)
        found = loop.busy_at()
        until()
        running.result(PATIENCE_S)
        return found.partition(":")[0] and found.rpartition(" ")[2]

    assert "" == blamed(in_the_package, left.done.set)
    assert "in_the_project" == blamed(in_the_project, ends.set)


def test_installed_code_alone_that_blocks_the_loop_is_not_blamed(loop: Loop) -> None:
    ends = threading.Event()
    loop.events.call_soon_threadsafe(ends.wait, PATIENCE_S)
    time.sleep(0.1)
    found = loop.busy_at()
    ends.set()
    assert "" == found
