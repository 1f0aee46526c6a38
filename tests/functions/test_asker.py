"""One request at a time to an engine and back, from the functions' loop and from other threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.asking.caching import Cache, CacheSettings
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import Budget
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, BudgetSpent
from pytest_lmeval.functions.asker import Asker, Note
from pytest_lmeval.functions.example import ExampleState, Watcher
from pytest_lmeval.functions.lm import LmBase
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.runner import Runner, Running
from pytest_lmeval.records.answers import KnownAnswers
from pytest_lmeval.types import Completion, Exchange, Generate

PATIENCE_S = 60.0
Make = Callable[..., tuple[Asker, list[Exchange]]]


class Model:
    """Answers with its prompt at a price of 1, once it is let."""

    name = "stub"
    fingerprint = "stub"
    request_options = ("temperature",)

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.may_answer = threading.Event()

    async def complete(self, request: Generate) -> Completion:
        self.asked.set()
        if request.text == "slow":
            await asyncio.to_thread(self.may_answer.wait, PATIENCE_S)
        if request.text == "fail":
            raise AdapterError("no answer")
        return Completion(request.text, cost=1.0)


class Batches:
    """Answers several prompts at a time, and keeps them."""

    name = "batches"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def generate(self, prompts: Any) -> list[str]:
        self.calls.append([*prompts])
        return [*prompts]


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(lambda: None)
    yield loop
    loop.close()


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Return what ``work`` returned or raised for each number, all at once, each in a thread of its own."""
    ready = threading.Barrier(count)

    def one(number: int) -> Any:
        ready.wait(PATIENCE_S)
        try:
            return work(number)
        except BaseException as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return [*threads.map(one, range(count))]


def state(id: str, watcher: Watcher | None = None) -> ExampleState:
    return ExampleState("task", id, 0, lambda state, said: None, watcher)


def into(noted: list[Exchange]) -> Note:
    return lambda task, id, exchange: noted.append(exchange)


@pytest.fixture
def asker(loop: Loop) -> Iterator[Make]:
    engines: list[Engine] = []

    def make(adapter: Any, budget: Budget | None = None, batch_size: int = 8) -> tuple[Asker, list[Exchange]]:
        noted: list[Exchange] = []
        engines.append(Engine(adapter, Policy(batch_size=batch_size, retries=0), budget))
        return Asker(engines[-1], loop, KnownAnswers(), into(noted)), noted

    yield make
    for engine in engines:
        engine.close()


def test_what_is_asked_in_one_turn_of_the_loop_goes_in_one_message(asker: Make, loop: Loop) -> None:
    made, _ = asker(Model())
    messages: list[int] = []
    send = made.engine.ask

    def ask(jobs: Sequence[Job], on_answer: Callable[[Job], None]) -> None:
        messages.append(len(jobs))
        send(jobs, on_answer)

    made.engine.ask = ask  # type: ignore[method-assign]  # what goes to the engine is what is counted

    async def all_of(texts: str) -> list[str]:
        answers = await asyncio.gather(*(made.ask(Generate(text)) for text in texts), return_exceptions=True)
        return [answer.text if isinstance(answer, Completion) else str(answer) for answer in answers]

    async def one_after_the_other() -> list[str]:
        return [*await all_of("abc"), *await all_of("d"), *await all_of("ef")]

    assert [*"abcdef"] == loop.submit(one_after_the_other()).result(PATIENCE_S)
    assert [3, 1, 2] == messages


@pytest.mark.parametrize("adapter", [Model, Batches])
def test_threads_that_ask_at_once_each_get_their_own_answer(asker: Make, adapter: Callable[[], Any]) -> None:
    made, noted = asker(adapter())

    def work(number: int) -> list[str]:
        return [made.ask_blocking(Generate(f"{number} {turn}", "task", str(number))).text for turn in range(4)]

    assert [[f"{number} {turn}" for turn in range(4)] for number in range(64)] == in_threads(64, work)
    assert 256 == len({each.request.text for each in noted if each.request.text == each.response.output})


def test_requests_of_threads_are_gathered_for_a_batch_adapter(asker: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.asker._GATHER_S", PATIENCE_S)
    adapter = Batches()
    made, _ = asker(adapter)
    answers = in_threads(64, lambda number: made.ask_blocking(Generate(str(number))).text)
    assert [str(number) for number in range(64)] == answers
    assert [8] * 8 == [len(call) for call in adapter.calls]


def test_threads_and_coroutines_share_a_batch(asker: Make, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.asker._GATHER_S", PATIENCE_S)
    adapter = Batches()
    made, _ = asker(adapter, batch_size=2)
    awaited = loop.submit(made.ask(Generate("a")))
    assert "b" == made.ask_blocking(Generate("b")).text
    assert "a" == awaited.result(PATIENCE_S).text
    assert [["a", "b"]] in ([sorted(call)] for call in adapter.calls)


def test_at_its_turn_nobody_else_is_waited_for(asker: Make, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.asker._GATHER_S", PATIENCE_S * 10)
    adapter = Batches()
    made, _ = asker(adapter)
    running = Running(lambda: made.ask_blocking(Generate("a")).text, LmBase(None), [state("a")])
    Runner(loop, 1).run_here(running)
    assert "a" == running.states[0].output


def test_at_its_turn_others_that_run_and_other_threads_of_its_own_are_waited_for() -> None:
    class Watching:
        running: set[ExampleState] = set()  # noqa: RUF012  # of this test alone

        def began(self, state: ExampleState) -> None:
            self.running.add(state)

        def ended(self, state: ExampleState) -> None:
            self.running.discard(state)

    watching = Watching()
    here, beside = state("a", watching), state("b", watching)
    here.begin()
    found = [here.is_alone, *in_threads(1, lambda _: here.is_alone)]
    beside.begin(beside=True)
    found.append(here.is_alone)
    beside.end()
    assert [True, False, False, True] == [*found, here.is_alone]


def test_what_threads_ask_while_one_sends_goes_in_one_message(asker: Make) -> None:
    made, _ = asker(Model())
    messages: list[int] = []
    sends, may_send = threading.Event(), threading.Event()
    send = made.engine.ask

    def ask(jobs: Sequence[Job], on_answer: Callable[[Job], None]) -> None:
        messages.append(len(jobs))
        sends.set()
        assert may_send.wait(PATIENCE_S)
        send(jobs, on_answer)

    made.engine.ask = ask  # type: ignore[method-assign]  # what goes to the engine is what is counted
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(made.ask_blocking, Generate("0"))]
        assert sends.wait(PATIENCE_S)
        asked += [threads.submit(made.ask_blocking, Generate(str(number))) for number in range(1, 6)]
        until = time.monotonic() + PATIENCE_S
        while len(made._gathered) < 5 and time.monotonic() < until:
            time.sleep(0.001)
        may_send.set()
        assert [*"012345"] == [each.result(PATIENCE_S).text for each in asked]
    assert [1, 5] == messages


def test_what_cannot_be_sent_is_an_error_of_all_whose_it_is(asker: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.asker._GATHER_S", PATIENCE_S)
    made, _ = asker(Batches())

    def ask(jobs: Sequence[Job], on_answer: Callable[[Job], None]) -> None:
        raise OSError("no more processes")

    made.engine.ask = ask  # type: ignore[method-assign]  # a transport that cannot begin
    found = in_threads(8, lambda number: made.ask_blocking(Generate(str(number))))
    assert ["no more processes"] * 8 == [str(each) for each in found]


def test_equal_requests_of_several_threads_have_a_number_each(loop: Loop, tmp_path: Path) -> None:
    def ask(_: int) -> int:
        return len(made.ask_blocking(Generate("hi", "task", "a")).text)

    for hits in (0, 16):
        model, cache, noted = Model(), Cache(CacheSettings(tmp_path)), list[Exchange]()
        made = Asker(Engine(model, Policy(), None, cache.of(model)), loop, None, into(noted))
        in_threads(16, ask)
        assert [*range(16)] == sorted(each.request.nth for each in noted)
        assert (hits, 16 - hits) == (cache.hits, cache.misses)
        made.engine.close()
        cache.store.close()


@pytest.mark.parametrize("adapter", [Model, Batches])
def test_threads_never_spend_more_than_the_limit(asker: Make, adapter: Callable[[], Any]) -> None:
    class Priced(Batches):
        def generate(self, prompts: Any) -> Any:
            return [Completion(prompt, cost=1.0) for prompt in super().generate(prompts)]

    model, budget = Priced() if adapter is Batches else Model(), Budget(20.0)
    made, noted = asker(model, budget)
    found = in_threads(64, lambda number: made.ask_blocking(Generate(str(number))))
    # A batch goes whole or not at all.
    assert (20 if adapter is Model else 20 - 7) <= len(noted) <= 20
    assert Counter({Completion: len(noted), BudgetSpent: 64 - len(noted)}) == Counter(map(type, found))
    assert float(len(noted)) == budget.spent


def test_what_a_thread_was_interrupted_in_is_paid_all_the_same(asker: Make) -> None:
    model, budget = Model(), Budget(1.0)
    made, _ = asker(model, budget)

    def interrupt() -> None:
        raise KeyboardInterrupt

    made.engine.look_after = interrupt  # type: ignore[method-assign]  # Ctrl-C while it waits
    with pytest.raises(KeyboardInterrupt):
        made.ask_blocking(Generate("slow"))
    made.engine.look_after = lambda: None  # type: ignore[method-assign]  # as above
    model.may_answer.set()
    with pytest.raises(BudgetSpent):
        made.ask_blocking(Generate("next"))
    assert 1.0 == budget.spent


def test_a_thread_that_waits_when_the_run_ends_goes_on(asker: Make, loop: Loop) -> None:
    model = Model()
    made, _ = asker(model)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(made.ask_blocking, Generate("slow"))
        assert model.asked.wait(PATIENCE_S)
        loop.close()
        with pytest.raises(AdapterError, match="the run ended before stub answered"):
            asked.result(PATIENCE_S)
    model.may_answer.set()


def test_what_was_cancelled_is_paid_all_the_same(asker: Make, loop: Loop) -> None:
    model, budget = Model(), Budget(1.0)
    made, _ = asker(model, budget)
    asked = loop.submit(made.ask(Generate("slow")))
    assert model.asked.wait(PATIENCE_S)
    asked.cancel()
    # Until its cost is known, the next one waits; then there is nothing left for it.
    following = loop.submit(made.ask(Generate("next")))
    model.may_answer.set()
    with pytest.raises(BudgetSpent):
        following.result(PATIENCE_S)
    assert 1.0 == budget.spent
