"""Batch adapters: one call after the other, the next batch while the last one is scored, no call for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.asking import batching
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.batching import BatchTransport
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError, AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb
from tests.tables import each_row

PATIENCE_S = 120.0


class Model:
    """Answers with the prompt, what ``faults`` says first; keeps its calls and how many went on at once."""

    name = "model"

    def __init__(self, **faults: list[Any]) -> None:
        self.faults = faults
        self.calls: list[list[str]] = []
        self.threads: set[str] = set()
        self.at_once = self.peak = 0

    def generate_requests(self, requests: list[Generate]) -> list[Any]:
        self.calls.append([request.text for request in requests])
        self.threads.add(threading.current_thread().name)
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        time.sleep(0.001)
        self.at_once -= 1
        return [self.answer(request) for request in requests]

    def answer(self, request: Generate) -> Any:
        faults = self.faults.get(request.text)
        return faults.pop(0) if faults else Completion(request.text)


def jobs_of(*batches: str) -> list[Job]:
    jobs = []
    for batch in batches:
        job = Job()
        for text in batch.split():
            job.add(text, [Generate(text)])
        jobs.append(job)
    return jobs


def test_a_later_answer_to_a_job_is_ignored() -> None:
    inbox, taken = Inbox(), []
    job = Job([Generate("a")], on_answer=lambda job: taken.append(job.answers))
    inbox.deliver(job, [Completion("in time")])
    inbox.deliver(job, [Completion("too late")])
    assert [[Completion("in time")]] == taken == [job.answers]


def answer(adapter: Any, jobs: list[Job], **limits: Any) -> None:
    inbox = Inbox()
    transport = BatchTransport(adapter, Policy(**limits), inbox)
    transport.submit(jobs)
    for job in jobs:
        assert inbox.wait(job, PATIENCE_S)
    transport.close()


def answers_of(adapter: Any, *batches: str, **limits: Any) -> list[list[str]]:
    jobs = jobs_of(*batches)
    answer(adapter, jobs, **limits)
    return [shown(job.answers or ()) for job in jobs]


def shown(answers: Sequence[Answer]) -> list[str]:
    return [
        answer.text if isinstance(answer, Completion) else f"{type(answer).__name__}: {answer}" for answer in answers
    ]


@pytest.fixture
def backoffs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float | None]]:
    """Provide what waits were asked for; none is waited."""
    asked: list[tuple[int, float | None]] = []

    def backoff(attempt: int, retry_after: float | None) -> float:
        asked.append((attempt, retry_after))
        return 0.001 * (retry_after or 0.0)

    monkeypatch.setattr(batching, "backoff_s", backoff)
    return asked


def test_batches_are_asked_in_order_one_at_a_time_outside_the_caller_s_thread() -> None:
    model = Model()
    assert [["a", "b"], ["c"], ["d", "e"]] == answers_of(model, "a b", "c", "d e")
    assert [["a", "b"], ["c"], ["d", "e"]] == model.calls
    assert 1 == model.peak
    assert {"lmeval-batches"} == model.threads


def test_only_what_failed_in_passing_is_asked_again(backoffs: list[tuple[int, float | None]]) -> None:
    faults: dict[str, list[Any]] = {
        "once": [TransientError("busy", 2.0)],
        "twice": [TransientError("busy", 9.0), TransientError("busy")],
        "never": [AdapterError("no such model")],
    }
    model = Model(**faults)
    (answers,) = answers_of(model, "a once twice never b")
    assert ["a", "once", "twice", "b"] == [answers[number] for number in (0, 1, 2, 4)]
    assert "AdapterError: no such model" in answers[3]
    assert [["a", "once", "twice", "never", "b"], ["once", "twice"], ["twice"]] == model.calls
    assert {(0, 2.0), (0, 9.0), (1, None)} == set(backoffs)


def test_the_longest_wait_that_was_asked_for_is_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(batching, "backoff_s", lambda attempt, wait: wait or 0.0)
    monkeypatch.setattr("pytest_lmeval.asking.batching.time.sleep", waited.append)
    faults = {"x": [TransientError("busy", 2.0)], "y": [TransientError("busy", 9.0)], "z": [TransientError("busy")]}
    (answers,) = answers_of(Model(**faults), "x y z")
    assert ["x", "y", "z"] == answers
    assert 9.0 in waited
    assert 2.0 not in waited


@pytest.mark.parametrize(("retries", "attempts"), [(0, "(1 attempt)"), (2, "(3 attempts)")])
def test_a_lasting_fault_says_how_often_it_was_tried(
    backoffs: list[tuple[int, float | None]], retries: int, attempts: str
) -> None:
    model = Model(bad=[TransientError("busy") for _ in range(9)])
    (answers,) = answers_of(model, "a bad", retries=retries)
    assert ["a", f"AdapterError: busy {attempts}"] == answers
    assert [["a", "bad"], *[["bad"]] * retries] == model.calls


class Stop(BaseException):
    pass


class Raising(Model):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def answer(self, request: Generate) -> Any:
        if request.text == "bad":
            raise self.error
        return super().answer(request)


@each_row("error", [SystemExit(3), Stop("own"), RuntimeError("boom")])
def test_whatever_an_adapter_raises_is_an_error_of_the_requests_that_raise_alone(error: BaseException) -> None:
    model = Raising(error)
    first, spoilt, last = answers_of(model, "a", "b bad d", "c")
    assert (["a"], ["c"]) == (first, last)
    assert ["b", "d"] == spoilt[::2]
    assert type(error).__name__ in spoilt[1]
    assert spoilt[1].endswith("(2 attempts)")
    assert [["a"], ["b", "bad", "d"], ["b"], ["bad"], ["d"], ["c"]] == model.calls


def test_requests_that_are_asked_alone_say_that_they_were_asked_before() -> None:
    (job,) = jobs_of("a bad")
    answer(Raising(RuntimeError("boom")), [job])
    good, bad = job.answers or ()
    assert isinstance(good, Completion)
    assert isinstance(bad, AdapterError)
    assert (1, 1) == (good.retries, bad.retries)


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        # What passes has been asked again together; then each is asked once more.
        (TransientError("busy"), [["a", "bad"]] * 3 + [["a"], ["bad"]]),
        (RequestRefused("filtered"), [["a", "bad"], ["a"], ["bad"]]),
        (AdapterError("no"), [["a", "bad"], ["a"], ["bad"]]),
        (AdapterTimeout("late"), [["a", "bad"]] * 3),
        (TimeoutError("late"), [["a", "bad"]] * 3),
        (TransientError("a day", 86_400.0), [["a", "bad"]]),
    ],
)
def test_what_is_raised_for_several_says_whether_each_is_asked_alone(
    backoffs: list[tuple[int, float | None]], error: Exception, calls: list[list[str]]
) -> None:
    model = Raising(error)
    answers_of(model, "a bad", retries=2)
    assert calls == model.calls


def test_an_error_that_is_returned_for_each_of_a_batch_is_no_call_that_raised() -> None:
    model = Model(a=[AdapterError("no")], b=[AdapterError("no")])
    answers_of(model, "a b")
    assert [["a", "b"]] == model.calls


def test_what_passes_while_requests_are_asked_alone_has_the_retries_that_are_left(
    backoffs: list[tuple[int, float | None]],
) -> None:
    class Shaky(Raising):
        def answer(self, request: Generate) -> Any:
            return TransientError("busy") if request.text == "shaky" else super().answer(request)

    model = Shaky(RuntimeError("boom"))
    (answers,) = answers_of(model, "shaky bad", retries=2)
    assert "AdapterError: busy (3 attempts)" == answers[0]
    assert [["shaky", "bad"], ["shaky"], ["shaky"], ["bad"]] == model.calls


@each_row("error", [Stop("all of it"), KeyboardInterrupt(), GeneratorExit()])
def test_what_means_to_stop_the_run_reaches_the_thread_that_waits(error: BaseException) -> None:
    engine = Engine(Raising(error), Policy(passthrough=(Stop,)))
    engine.respond("good", lambda key: [Generate(str(key))])
    with pytest.raises(type(error)):
        engine.respond("bad", lambda key: [Generate(str(key))])
    engine.close()


def test_a_stuck_call_is_a_timeout_of_its_batch_and_asks_nothing_when_it_comes_back() -> None:
    stuck, free = threading.Event(), threading.Event()

    class Sticky(Model):
        def generate_requests(self, requests: list[Generate]) -> list[Any]:
            answers = super().generate_requests(requests)
            if requests[0].text == "b0":
                stuck.set()
                free.wait(PATIENCE_S)
            return answers

    model = Sticky()
    engine = Engine(model, Policy(batch_size=2, timeout_s=0.5))
    keys = ["a", "b", "c", "d"]
    coming = iter(keys)
    engine.plan([["a"], ["b"], ["c"], ["d"]], lambda: next(coming, None))
    outcomes: dict[str, Any] = {}
    for key in keys:
        try:
            # Two calls each, so that the stuck one has another ahead of it.
            outcomes[key] = shown(engine.respond(key, lambda key: [Generate(f"{key}{n}") for n in range(4)]))
        except AdapterTimeout as error:
            outcomes[key] = str(error)
        if key == "c":
            free.set()
            time.sleep(0.2)
    engine.close()
    assert stuck.is_set()
    assert "did not return within 0.5 s for each of 2 request(s)" in outcomes.pop("b")
    assert {key: [f"{key}{number}" for number in range(4)] for key in "acd"} == outcomes
    assert [["b0", "b1"]] == [call for call in model.calls if call[0].startswith("b")]


def test_a_slow_call_is_not_stuck_as_long_as_it_has_time_for_every_request() -> None:
    class Slow(Model):
        def generate_requests(self, requests: list[Generate]) -> list[Any]:
            time.sleep(0.6)
            return super().generate_requests(requests)

    engine = Engine(Slow(), Policy(batch_size=8, timeout_s=0.25))
    engine.plan([list("abcdefgh")])
    assert ["a"] == shown(engine.respond("a", lambda key: [Generate(str(key))]))
    engine.close()


def test_closing_asks_no_more_after_the_call_that_is_under_way() -> None:
    begun, free = threading.Event(), threading.Event()

    class Slow(Model):
        def generate_requests(self, requests: list[Generate]) -> list[Any]:
            answers = super().generate_requests(requests)
            begun.set()
            free.wait(PATIENCE_S)
            return answers

    before = set(threading.enumerate())  # a stuck one of another test may be left
    model, inbox = Slow(), Inbox()
    transport = BatchTransport(model, Policy(batch_size=2), inbox)
    first, second = jobs_of("a b c d", "e")
    transport.submit([first, second])
    assert begun.wait(PATIENCE_S)
    transport.close()
    free.set()
    deadline = time.monotonic() + PATIENCE_S
    while any(thread.name == "lmeval-batches" for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert [["a", "b"]] == model.calls


class Probable(Model):
    """Also tells how probable a text is, and keeps which were asked for together."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[list[str]] = []

    def loglikelihood(self, requests: list[LogLikelihood]) -> list[LogProb]:
        self.together.append([request.continuation for request in requests])
        return [LogProb(-float(len(request.continuation))) for request in requests]


def test_all_that_a_batch_of_examples_wants_to_know_is_asked_in_one_call() -> None:
    model, job = Probable(), Job()
    for key in "abc":
        job.add(key, [LogLikelihood(key, " " * size) for size in (1, 2, 3)])
    answer(model, [job], batch_size=2)
    assert [[" ", "  ", "   "] * 3] == model.together
    assert [-1.0, -2.0, -3.0] * 3 == [answer.total for answer in job.answers or () if isinstance(answer, LogProb)]


def test_where_texts_are_asked_for_as_well_calls_stay_small() -> None:
    model, job = Probable(), Job()
    job.add("key", [Generate("a"), LogLikelihood("a", "b"), Generate("c")])
    answer(model, [job], batch_size=2)
    assert ([["a"], ["c"]], [["b"]]) == (model.calls, model.together)
