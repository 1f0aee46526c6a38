"""One answer per request, in order, whatever kind of adapter answers and however it misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.asking import pacing
from pytest_lmeval.asking.ask import Answer, ask, unusable
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterError, AdapterTimeout
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Request
from tests.tables import each_row

REQUESTS = [Generate(f"prompt {number}", "task", f"id-{number}") for number in range(3)]


class Scripted:
    """Answers a batch of prompts by calling what it was given."""

    name = "scripted"

    def __init__(self, answer: Callable[[Sequence[str]], Any]) -> None:
        self.generate = answer


class ByRequest:
    """Answers full requests by calling what it was given."""

    name = "by-request"

    def __init__(self, answer: Callable[[list[Generate]], Any]) -> None:
        self.generate_requests = answer


def answers_of(adapter: Any, requests: Sequence[Request]) -> list[Any]:
    """Ask through the engine, one key a request, as async adapters are asked."""
    engine = Engine(adapter, Policy(batch_size=len(requests), retries=0))
    keys = iter(range(len(requests)))
    engine.plan([range(len(requests))], lambda: next(keys, None))
    answers: list[Any] = []
    for number in range(len(requests)):
        try:
            answers += engine.respond(number, lambda key: [requests[key]])
        except AdapterError as error:
            answers.append(error)
    engine.close()
    return answers


class Async:
    """Answers one request at a time by awaiting what it was given."""

    name = "async"

    def __init__(self, answer: Callable[[Generate], Any]) -> None:
        self.answer = answer

    async def complete(self, request: Generate) -> Any:
        return await self.answer(request)


def _raise(error: BaseException) -> Any:
    raise error


def _texts(answers: Sequence[Answer]) -> list[str]:
    return [f"error: {answer}" if isinstance(answer, AdapterError) else _text(answer) for answer in answers]


def _text(answer: object) -> str:
    assert isinstance(answer, Completion)
    return answer.text


# The kinds of adapters


def test_an_async_adapter_is_awaited_for_every_request_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "ALONE_S", 0.0)

    async def answer(request: Generate) -> Completion:
        arrived.append(request)
        if len(arrived) == len(REQUESTS):
            everyone.set()
        # One at a time, the first would wait for the others for ever.
        await asyncio.wait_for(everyone.wait(), 30)
        return Completion(request.id)

    arrived: list[Generate] = []
    everyone = asyncio.Event()
    assert ["id-0", "id-1", "id-2"] == _texts(answers_of(Async(answer), REQUESTS))


class Everything:
    """Has every way to answer."""

    name = "everything"

    async def complete(self, request: Generate) -> Completion:
        return Completion("complete")

    def generate_requests(self, requests: list[Generate]) -> list[Completion]:
        return [Completion("generate_requests")] * len(requests)

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return ["generate"] * len(prompts)


def test_the_first_of_complete_generate_requests_and_generate_is_used() -> None:
    adapter: Any = Everything()
    assert ["complete"] == _texts(answers_of(adapter, REQUESTS[:1]))
    adapter.complete = None
    assert ["generate_requests"] == _texts(answers_of(adapter, REQUESTS[:1]))
    adapter.generate_requests = None
    assert ["generate"] == _texts(answers_of(adapter, REQUESTS[:1]))


class Mixed:
    """Answers requests of both kinds, and says which it got."""

    name = "mixed"

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return [f"{prompt} of {len(prompts)}" for prompt in prompts]

    def loglikelihood(self, requests: list[LogLikelihood]) -> list[LogProb]:
        return [LogProb(-float(request.continuation)) for request in requests]


def test_requests_of_both_kinds_are_put_back_into_their_order() -> None:
    requests: list[Request] = [LogLikelihood("a", "1"), Generate("b"), LogLikelihood("a", "2"), Generate("c")]
    answers = ask(Mixed(), requests)
    assert [-1.0, "b of 2", -2.0, "c of 2"] == [
        answer.total if isinstance(answer, LogProb) else _text(answer) for answer in answers
    ]


def test_no_request_asks_nothing() -> None:
    assert [] == ask(Scripted(lambda prompts: _raise(RuntimeError("asked"))), [])


# Latency


def test_the_time_of_a_batch_is_shared_out() -> None:
    latencies = [answer.latency_ms for answer in ask(Scripted(list), REQUESTS) if isinstance(answer, Completion)]
    assert 3 == len(latencies)
    assert 1 == len(set(latencies))
    assert all(latency is not None and latency >= 0 for latency in latencies)


def test_a_time_that_the_adapter_knows_is_kept() -> None:
    async def answer(request: Generate) -> Completion:
        return Completion("x", 7.5)

    for adapter in (ByRequest(lambda batch: [Completion("x", 7.5)] * len(batch)), Async(answer)):
        assert [Completion("x", 7.5)] * 3 == answers_of(adapter, REQUESTS)


def test_a_time_that_an_async_adapter_does_not_know_is_measured() -> None:
    async def answer(request: Generate) -> Completion:
        return Completion("x")

    (completion,) = answers_of(Async(answer), REQUESTS[:1])
    assert isinstance(completion, Completion)
    assert completion.latency_ms is not None


# Misbehaviour: never a number, never another request's answer


@pytest.mark.parametrize("error", [RuntimeError("boom"), ValueError("boom"), SystemExit("boom"), MemoryError("boom")])
def test_what_a_batch_adapter_raises_is_the_error_of_every_request(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    answers = ask(Scripted(lambda prompts: _raise(error)), REQUESTS)
    place = f"tests/asking/test_ask.py:{_raise.__code__.co_firstlineno + 1} in _raise"
    assert [f"error: adapter scripted raised {type(error).__name__}: boom ({place})"] * 3 == _texts(answers)
    assert [0] * 3 == [answer.status for answer in answers if isinstance(answer, AdapterError)]


def test_an_adapter_error_is_kept_as_it_is() -> None:
    error = AdapterError("no credit left")
    answers = ask(Scripted(lambda prompts: _raise(error)), REQUESTS)
    assert all(answer is error for answer in answers)


@pytest.mark.parametrize("error", [TimeoutError("60 s"), AdapterTimeout("60 s")])
def test_a_timeout_is_told_apart(error: Exception) -> None:
    async def answer(request: Generate) -> Completion:
        raise error

    for adapter in (Scripted(lambda prompts: _raise(error)), Async(answer)):
        answers = answers_of(adapter, REQUESTS)
        assert [AdapterTimeout] * 3 == [type(answer) for answer in answers]
        assert all("60 s" in str(answer) for answer in answers)


def test_the_place_of_a_failure_is_the_last_line_that_is_not_ours(tmp_path: Path) -> None:
    library = tmp_path / "site-packages/client/calls.py"
    library.parent.mkdir(parents=True)
    library.write_text("def call(token):\n    raise RuntimeError('boom')\n", encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(library.read_text(encoding="utf-8"), library, "exec"), scope)
    (answer, *_) = ask(Scripted(lambda prompts: scope["call"]("hush-1234")), REQUESTS)
    assert "adapter scripted raised RuntimeError: boom (client/calls.py:2 in call)" == str(answer)


def test_a_failure_without_a_line_outside_the_package_names_no_place() -> None:
    assert "adapter scripted raised RuntimeError: boom" == str(unusable(Scripted(len), RuntimeError("boom")))


def test_a_place_outside_the_project_is_a_bare_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (answer, *_) = ask(Scripted(lambda prompts: _raise(RuntimeError("boom"))), REQUESTS)
    assert f"(test_ask.py:{_raise.__code__.co_firstlineno + 1} in _raise)" in str(answer)


def test_an_adapter_without_a_way_to_answer_is_an_error_of_every_request() -> None:
    answers = ask(object(), [*REQUESTS, LogLikelihood("a", "b")])
    assert [AdapterError] * 4 == [type(answer) for answer in answers]
    assert "any of complete, generate_requests, generate" in str(answers[0])
    assert "loglikelihood" in str(answers[3])


@each_row(
    ("odd", "said"),
    [
        *((odd, "expected LogProb") for odd in ("-1.0", -1.0, Completion("x"), None)),
        (LogProb(float("nan")), "total nan"),
    ],
)
def test_what_is_no_log_probability_is_the_error_of_its_request_alone(odd: Any, said: str) -> None:
    class Odd:
        name = "odd"

        def loglikelihood(self, requests: list[LogLikelihood]) -> list[Any]:
            return [odd, LogProb(-2.0, latency_ms=1.0)]

    first, second = ask(Odd(), [LogLikelihood("a", "b"), LogLikelihood("a", "c")])
    assert isinstance(first, AdapterError)
    assert said in str(first)
    assert LogProb(-2.0, latency_ms=1.0) == second


@each_row("odd", [None, True, 0, -1.5, float("nan"), b"a", [], ["a"], ("a",), {"a": 1}, {"a"}, LogProb(-1.0)])
def test_an_odd_response_among_good_ones_is_the_error_of_its_request_alone(odd: Any) -> None:
    wrong = f"error: adapter scripted returned {type(odd).__name__}, expected text"
    for place in range(3):
        returned = ["a", Completion("b"), "c"]
        returned[place] = odd
        expected = ["a", "b", "c"]
        expected[place] = wrong
        assert expected == _texts(ask(Scripted(lambda prompts: returned), REQUESTS))  # noqa: B023  # called at once


@each_row("returned", [None, True, 3, "abc", b"abc", {"a", "b", "c"}, {0: "a", 1: "b"}, iter("abc"), Completion("x")])
def test_what_is_no_list_of_responses_is_the_error_of_every_request(returned: Any) -> None:
    wrong = f"error: adapter scripted returned {type(returned).__name__} for 3 request(s); expected a list"
    assert [wrong] * 3 == _texts(ask(Scripted(lambda prompts: returned), REQUESTS))


@each_row("returned", [[], (), ["a"], ["a", "b"], ("a", "b", "c", "d")])
def test_a_list_of_another_length_is_the_error_of_every_request(returned: Sequence[str]) -> None:
    wrong = f"error: adapter scripted returned {len(returned)} response(s) for 3 request(s)"
    assert [wrong] * 3 == _texts(ask(Scripted(lambda prompts: returned), REQUESTS))


@each_row("calls", [None, [], ()])
def test_no_calls_may_be_none_or_a_list(calls: Any) -> None:
    (answer,) = ask(ByRequest(lambda _: [Completion("4", tool_calls=calls)]), REQUESTS[:1])
    assert isinstance(answer, Completion)
    assert ("4", ()) == (answer.text, answer.tool_calls)
