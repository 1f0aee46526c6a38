"""One request at a time to an engine and back, from the functions' loop and from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import Budget
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, BudgetSpent
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.records.answers import KnownAnswers
from pytest_lmeval.types import Completion, Exchange, Generate

PATIENCE_S = 60.0


class Model:
    """Answers with its prompt at a price of 1, once it is let."""

    name = "stub"
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


def asker(adapter: Any, loop: Loop, budget: Budget | None = None, batch_size: int = 8) -> tuple[Asker, list[Exchange]]:
    noted: list[Exchange] = []
    policy = Policy(batch_size=batch_size, retries=0)
    return Asker(Engine(adapter, policy, budget), loop, KnownAnswers(), noted.append), noted


def test_an_answer_comes_back_to_whoever_asked_and_is_noted(loop: Loop) -> None:
    made, noted = asker(Model(), loop)
    request = Generate("hi", "task", "a")
    assert "hi" == made.ask_blocking(request).text
    assert "hi" == asyncio.run(made.ask(request)).text
    assert [request, request] == [each.request for each in noted]
    with pytest.raises(AdapterError, match="no answer"):
        made.ask_blocking(Generate("fail", "task", "a"))
    made.engine.close()


def test_options_that_the_adapter_does_not_take_are_named(loop: Loop) -> None:
    made, _ = asker(Model(), loop)
    assert "hi" == made.ask_blocking(Generate("hi", options={"temperature": 1})).text
    with pytest.raises(AdapterError, match=r"adapter stub does not take top_p from lm\.ask; it takes temperature"):
        made.ask_blocking(Generate("hi", options={"top_p": 1}))
    made.engine.close()


def test_requests_for_a_batch_adapter_are_gathered(loop: Loop) -> None:
    adapter = Batches()
    made, _ = asker(adapter, loop, batch_size=2)

    async def all_of() -> list[Completion]:
        return await asyncio.gather(*(made.ask(Generate(text)) for text in "abc"))

    assert ["a", "b", "c"] == [each.text for each in loop.submit(all_of()).result(PATIENCE_S)]
    assert [["a", "b"], ["c"]] == adapter.calls
    made.engine.close()


def test_what_is_asked_in_one_turn_of_the_loop_goes_in_one_message(loop: Loop) -> None:
    made, _ = asker(Model(), loop)
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
    made.engine.close()


def test_what_was_cancelled_is_paid_all_the_same(loop: Loop) -> None:
    model, budget = Model(), Budget(1.0)
    made, _ = asker(model, loop, budget)
    asked = loop.submit(made.ask(Generate("slow")))
    assert model.asked.wait(PATIENCE_S)
    asked.cancel()
    # Until its cost is known, the next one waits; then there is nothing left for it.
    following = loop.submit(made.ask(Generate("next")))
    model.may_answer.set()
    with pytest.raises(BudgetSpent):
        following.result(PATIENCE_S)
    assert not budget.is_waiting
    made.engine.close()
