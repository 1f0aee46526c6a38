"""Async adapters: many requests in flight, each with its own time limit and retries, none at another's expense."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from pytest_lmeval.asking import attempts, pacing, streaming
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.streaming import AsyncTransport
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError, AdapterTimeout, TransientError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb

PATIENCE_S = 120.0
Behaviour = Callable[["Model", Generate], Awaitable[Any]]


class Model:
    """Counts what is in flight and does what ``behave`` says."""

    name = "model"

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.asked: list[str] = []
        self.in_flight = self.peak = 0
        self.closed_by: list[str] = []

    async def complete(self, request: Generate) -> Any:
        self.asked.append(request.text)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            return await self.behave(self, request)
        finally:
            self.in_flight -= 1

    async def aclose(self) -> None:
        self.closed_by.append(threading.current_thread().name)


async def echo(model: Model, request: Generate) -> Completion:
    return Completion(request.text)


def job_of(*texts: str) -> Job:
    job = Job()
    job.add("key", [Generate(text) for text in texts])
    return job


def answers_to(adapter: Any, jobs: Sequence[Job], policy: Policy | None = None) -> list[Answer]:
    inbox = Inbox()
    transport = AsyncTransport(adapter, policy or Policy(), inbox)
    transport.submit(jobs)
    for job in jobs:
        assert inbox.wait(job, PATIENCE_S)
    transport.close()
    return [answer for job in jobs for answer in job.answers or ()]


def answers_of(adapter: Any, texts: Sequence[str], policy: Policy | None = None) -> list[Answer]:
    """Ask one job per text, all at once, and return the answers in order."""
    return answers_to(adapter, [job_of(text) for text in texts], policy)


def shown(answers: Sequence[Answer]) -> list[str]:
    return [
        answer.text if isinstance(answer, Completion) else f"{type(answer).__name__}: {answer}" for answer in answers
    ]


@pytest.fixture(autouse=True)
def soon_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first request go alone for no time: some models here answer only once all are there."""
    monkeypatch.setattr(pacing, "ALONE_S", 0.0)


@pytest.fixture
def backoffs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float | None]]:
    """Provide what waits were asked for; none is waited."""
    asked: list[tuple[int, float | None]] = []

    def backoff(attempt: int, retry_after: float | None) -> float:
        asked.append((attempt, retry_after))
        return 0.0

    monkeypatch.setattr(attempts, "backoff_s", backoff)
    return asked


def test_an_adapter_may_want_more_requests_in_flight_and_none_to_go_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "ALONE_S", PATIENCE_S)

    class Wide(Model):
        requests_in_flight = 40
        is_ready = True

    async def until_all_are_there(model: Model, request: Generate) -> Completion:
        while model.peak < 40:
            await asyncio.sleep(0.001)
        return Completion(request.text)

    model = Wide(until_all_are_there)
    engine = Engine(model, Policy(concurrency=2))
    later = iter([f"t{number}" for number in range(1, 60)])
    engine.plan([(f"t{number}",) for number in range(60)], lambda: next(later, None))
    assert ["t0"] == [getattr(response, "text", "") for response in engine.respond("t0", lambda key: [Generate(key)])]
    engine.close()
    assert 40 == model.peak == engine.policy.concurrency


def test_an_adapter_that_knows_when_the_time_of_a_request_begins_ends_it_itself() -> None:
    class Patient(Model):
        time_limit_s = 0.0

    async def late(model: Model, request: Generate) -> Completion:
        await asyncio.sleep(0.05)
        if request.text == "later":
            raise AdapterTimeout(f"no answer within {vars(model)['time_limit_s']:g} s")
        return Completion(request.text)

    answers = answers_of(Patient(late), ["late", "later"], Policy(timeout_s=0.01, retries=0))
    assert ["late", "AdapterTimeout: no answer within 0.01 s (1 attempt)"] == shown(answers)


def test_the_requests_of_one_job_are_in_flight_together_and_answered_in_order() -> None:
    done: list[str] = []

    async def backwards(model: Model, request: Generate) -> Completion:
        while len(done) < 3 - int(request.text):
            await asyncio.sleep(0.001)
        done.append(request.text)
        return Completion(request.text)

    assert ["0", "1", "2", "3"] == shown(answers_to(Model(backwards), [job_of("0", "1", "2", "3")]))
    assert ["3", "2", "1", "0"] == done


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_request_that_hangs_is_a_timeout_and_holds_nobody_up(stubborn: bool) -> None:
    async def hang(model: Model, request: Generate) -> Completion:
        if request.text == "hangs":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if stubborn:
                    await asyncio.sleep(60)
                raise
        return Completion(request.text)

    model = Model(hang)
    answers = answers_of(model, ["a", "hangs", "b"], Policy(concurrency=1, timeout_s=0.5, retries=1))
    timeout = "AdapterTimeout: no response within 0.5 s (--lm-timeout) (2 attempts)"
    assert ["a", timeout, "b"] == shown(answers)
    assert ["a", "hangs", "hangs", "b"] == model.asked
    # What is late is cancelled before the next is asked; what heeds no cancellation goes on beside it.
    assert (3 if stubborn else 1) == model.peak


class Stop(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [SystemExit(3), Stop("own"), asyncio.CancelledError(), RuntimeError("boom")], ids=repr
)
def test_whatever_an_adapter_raises_is_an_error_of_its_request_alone(error: BaseException) -> None:
    async def fail(model: Model, request: Generate) -> Completion:
        if request.text == "bad":
            raise error
        return Completion(request.text)

    model = Model(fail)
    first, bad, last = answers_of(model, ["a", "bad", "b"], Policy(concurrency=1))
    assert ["a", "b"] == shown([first, last])
    assert isinstance(bad, AdapterError)
    assert type(error).__name__ in str(bad)
    assert 3 == len(model.asked)


@pytest.mark.usefixtures("backoffs")
def test_what_comes_after_its_time_is_no_answer() -> None:
    async def first_is_late(model: Model, request: Generate) -> Completion:
        if len(model.asked) == 1:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return Completion("too late")
        await asyncio.sleep(0.1)
        return Completion("in time")

    assert ["in time"] == shown(answers_of(Model(first_is_late), ["a"], Policy(timeout_s=0.3, retries=1)))


def test_each_of_many_requests_has_the_whole_time() -> None:
    async def some_hang(model: Model, request: Generate) -> Completion:
        number = int(request.text)
        await asyncio.sleep(60 if number % 3 == 1 else 0.4 if number % 3 == 2 else 0)
        return Completion(request.text)

    late = "AdapterTimeout: no response within 0.7 s (--lm-timeout) (1 attempt)"
    texts = [str(number) for number in range(30)]
    answers = answers_of(Model(some_hang), texts, Policy(concurrency=8, timeout_s=0.7, retries=0))
    assert [late if int(text) % 3 == 1 else text for text in texts] == shown(answers)


@pytest.mark.parametrize("error", [Stop("all of it"), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_means_to_stop_the_run_reaches_the_thread_that_waits(error: BaseException) -> None:
    async def stop(model: Model, request: Generate) -> Completion:
        if request.text == "bad":
            raise error
        return Completion(request.text)

    engine = Engine(Model(stop), Policy(passthrough=(Stop,)))
    engine.respond("good", lambda key: [Generate(key)])
    with pytest.raises(type(error)):
        engine.respond("bad", lambda key: [Generate(key)])
    engine.close()


def test_a_passing_fault_is_asked_again_after_the_time_that_was_asked_for(
    backoffs: list[tuple[int, float | None]],
) -> None:
    async def third_time_lucky(model: Model, request: Generate) -> Completion:
        tries = model.asked.count(request.text)
        if request.text == "busy" and tries < 3:
            raise TransientError("busy", 7.0 if tries == 1 else None)
        return Completion(request.text)

    model = Model(third_time_lucky)
    assert ["a", "busy", "b"] == shown(answers_of(model, ["a", "busy", "b"]))
    assert [(0, 7.0), (1, None)] == backoffs
    assert 5 == len(model.asked)


def test_waiting_to_ask_again_is_not_part_of_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def second_time(model: Model, request: Generate) -> Completion:
        if len(model.asked) == 1:
            raise TransientError("busy")
        return Completion(request.text)

    monkeypatch.setattr(attempts, "backoff_s", lambda attempt, wait: 1.5)
    assert ["a"] == shown(answers_of(Model(second_time), ["a"], Policy(timeout_s=1.0)))


def test_closing_cancels_what_is_in_flight_and_asks_no_more() -> None:
    async def hang(model: Model, request: Generate) -> Completion:
        await asyncio.sleep(60)
        raise AssertionError

    inbox, model = Inbox(), Model(hang)
    before = set(threading.enumerate())  # a stuck one of another test may be left
    transport = AsyncTransport(model, Policy(concurrency=2), inbox)
    transport.submit([job_of(f"t{number}") for number in range(10)])
    deadline = time.monotonic() + PATIENCE_S
    while model.in_flight < 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    transport.close()
    assert (["t0", "t1"], 0) == (model.asked, model.in_flight)
    assert ["lmeval-requests"] == model.closed_by
    assert set() == set(threading.enumerate()) - before


def test_where_no_event_loop_can_be_made_each_request_is_answered_with_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("no sockets here")

    monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    said = "AdapterDown: adapter model: cannot create an event loop: RuntimeError: no sockets here"
    assert [said, said] == shown(answers_of(Model(echo), ["a", "b"]))


def test_closing_what_was_never_used_starts_nothing() -> None:
    model = Model(echo)
    AsyncTransport(model, Policy(), Inbox()).close()
    assert [] == model.closed_by


def test_a_transport_that_was_asked_for_nothing_is_not_stuck_however_long_that_lasts() -> None:
    assert not AsyncTransport(Model(echo), Policy(timeout_s=-60.0), Inbox()).is_stuck()


@pytest.mark.parametrize("failure", [RuntimeError("cannot close"), SystemExit(1), asyncio.CancelledError()], ids=repr)
def test_an_adapter_that_cannot_close_does_not_spoil_the_run(failure: BaseException) -> None:
    class Unclosable(Model):
        async def aclose(self) -> None:
            raise failure

    assert ["a"] == shown(answers_of(Unclosable(echo), ["a"]))


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_GRACE_S", 0.5)
    monkeypatch.setattr(streaming, "_HEARTBEAT_S", 0.05)


def outcomes_of_a_blocking_model(concurrency: int) -> tuple[list[str], dict[str, str], Model]:
    """Ask for fourteen keys, of which the second blocks the event loop until the run is half way through."""
    free = threading.Event()

    async def block(model: Model, request: Generate) -> Completion:
        if request.text == "blocks":
            free.wait(PATIENCE_S)
        return Completion(request.text)

    model = Model(block)
    keys = ["a", "blocks", *(f"t{number}" for number in range(12))]
    coming = iter(keys)
    engine = Engine(model, Policy(concurrency=concurrency, timeout_s=1.0))
    engine.plan([[key] for key in keys], lambda: next(coming, None))
    outcomes = {}
    for key in keys:
        try:
            outcomes[key] = shown(engine.respond(key, lambda key: [Generate(str(key))]))[0]
        except AdapterTimeout as error:
            outcomes[key] = str(error)
        if key == "t5":
            free.set()  # the old loop comes to life again while the new one is at work
            time.sleep(0.3)
    engine.close()
    return keys, outcomes, model


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_blocked_loop_is_replaced_harms_no_request_beside_it_and_asks_nothing_twice(concurrency: int) -> None:
    keys, outcomes, model = outcomes_of_a_blocking_model(concurrency)
    assert "blocked its event loop" in outcomes.pop("blocks")
    assert {key: key for key in keys if key != "blocks"} == outcomes
    assert 1 == model.asked.count("blocks")
    assert concurrency > 1 or sorted(keys) == sorted(model.asked)


def test_a_log_probability_that_hangs_is_a_timeout() -> None:
    free = threading.Event()

    class Probable(Model):
        def loglikelihood(self, requests: list[LogLikelihood]) -> list[LogProb]:
            free.wait(PATIENCE_S)
            return [LogProb(-1.0) for _ in requests]

    inbox = Inbox()
    transport = AsyncTransport(Probable(echo), Policy(timeout_s=0.2, retries=0), inbox)
    job = Job()
    job.add("key", [LogLikelihood("a", "b")])
    transport.submit([job])
    try:
        assert inbox.wait(job, PATIENCE_S)
        (answer,) = job.answers or ()
        assert isinstance(answer, AdapterTimeout)
    finally:
        free.set()
        transport.close()


class Asked(Model):
    """Is asked for log-probabilities as it is for texts: one at a time, many at once."""

    async def loglikelihood(self, requests: list[LogLikelihood]) -> Any:
        (request,) = requests
        self.asked.append(request.continuation)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            return await self.behave(self, Generate(request.continuation))
        finally:
            self.in_flight -= 1


def log_probs_of(adapter: Any, texts: Sequence[str], policy: Policy | None = None) -> list[Answer]:
    return answers_to(adapter, [Job([LogLikelihood("a", text) for text in texts])], policy)


def test_log_probabilities_are_awaited_many_at_once() -> None:
    async def behave(model: Model, request: Generate) -> list[LogProb]:
        await asyncio.sleep(0.02)
        return [LogProb(-float(len(request.text)))]

    model = Asked(behave)
    answers = log_probs_of(model, ["b" * size for size in range(1, 9)], Policy(concurrency=4))
    assert [-float(size) for size in range(1, 9)] == [one.total for one in answers if isinstance(one, LogProb)]
    assert 4 == model.peak
    assert all(isinstance(one, LogProb) and one.latency_ms is not None for one in answers)


def test_a_log_probability_is_asked_for_again_where_that_may_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "backoff_s", lambda *_: 0.0)

    async def behave(model: Model, request: Generate) -> list[LogProb]:
        if len(model.asked) < 3:
            raise TransientError("busy")
        return [LogProb(-1.0)]

    model = Asked(behave)
    (answer,) = log_probs_of(model, ["b"], Policy(retries=2))
    assert isinstance(answer, LogProb)
    assert 3 == len(model.asked)


@pytest.mark.parametrize(
    ("returned", "named"),
    [
        ([], "list of 0 for 1 request"),
        ([LogProb(-1.0)] * 2, "list of 2 for 1 request"),
        (None, "NoneType for 1 request"),
        ([Completion("a")], "returned Completion, expected LogProb"),
        ([LogProb(float("nan"))], "total nan; expected a log-probability"),
    ],
)
def test_what_is_no_log_probability_is_an_error(returned: Any, named: str) -> None:
    async def behave(model: Model, request: Generate) -> Any:
        return returned

    (answer,) = log_probs_of(Asked(behave), ["b"])
    assert isinstance(answer, AdapterError)
    assert named in str(answer)


def test_an_adapter_of_nothing_but_awaited_log_probabilities_is_streamed() -> None:
    class Only:
        name = "only"

        async def loglikelihood(self, requests: list[LogLikelihood]) -> list[LogProb]:
            return [LogProb(-1.0) for _ in requests]

    engine = Engine(Only())
    try:
        assert [-1.0] == [
            one.total for one in engine.respond("k", lambda _: [LogLikelihood("a", "b")]) if isinstance(one, LogProb)
        ]
    finally:
        engine.close()
