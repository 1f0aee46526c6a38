"""Where nothing works from the start, or nobody is there any more, the run ends; one that gets any answer goes on."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter
from pytest_lmeval.asking import attempts, batching, pacing
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import REPEATS_AT_FIRST, REPEATS_LATER, Outage, is_unreachable
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.types import Completion, Generate

FINE = Completion("fine")


class Client:
    """Does what ``behave`` says with the number of the attempt, and counts the attempts at each prompt."""

    name = "client"
    base_url = "https://me:secret@models.example/v1"

    def __init__(self, behave: Callable[[int], Any]) -> None:
        self.behave = behave
        self.attempts: Counter[str] = Counter()
        self.in_flight: list[int] = []
        self._open = 0

    async def complete(self, request: Generate) -> Any:
        self._open += 1
        self.in_flight.append(self._open)
        await asyncio.sleep(0.001)
        self._open -= 1
        self.attempts[request.text] += 1
        return self.behave(self.attempts.total())


class BatchClient(Client):
    """The same, of batches."""

    complete: Any = None

    def generate(self, prompts: Sequence[str]) -> list[Any]:
        self.attempts.update(prompts)
        return [self.behave(self.attempts.total())] * len(prompts)


def outcomes(adapter: Any, examples: int, **policy: Any) -> tuple[list[str], str]:
    """Ask one prompt per example until the engine says stop; return answers or error texts, and why it stopped."""
    engine = Engine(adapter, Policy(**policy))
    keys = iter(range(examples))
    engine.plan([range(examples)], lambda: next(keys, None))
    texts = []
    for number in range(examples):
        try:
            (response,) = engine.respond(number, lambda key: [Generate(f"p{key}")])
        except AdapterError as error:
            texts.append(str(error))
        else:
            assert isinstance(response, Completion)
            texts.append(response.text)
        if engine.stopped:
            break
    engine.close()
    return texts, engine.stopped


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (attempts, batching):
        monkeypatch.setattr(module, "backoff_s", lambda attempt, retry_after: 0.0)


@pytest.fixture
def nobody() -> Iterator[int]:
    """Provide a port of this machine that is taken, and that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def raising(error: BaseException) -> Any:
    raise error


FATAL = [AdapterError("HTTP 401 from /v1: no such key"), ConnectionRefusedError("nobody"), ValueError("a bug")]


@pytest.mark.parametrize("concurrency", [1, 4, 30])
@pytest.mark.parametrize("error", FATAL, ids=repr)
def test_five_errors_alike_before_any_answer_end_the_run_and_no_sixth_request_is_sent(
    error: Exception, concurrency: int
) -> None:
    adapter = Client(lambda attempt: raising(error))
    texts, stopped = outcomes(adapter, 60, concurrency=concurrency, retries=0)
    assert REPEATS_AT_FIRST == adapter.attempts.total() == len(texts)
    assert not any("stopped" in text for text in texts[:-1])
    assert texts[-1] == stopped
    assert stopped.startswith(
        "stopped: the first 5 requests to client at https://***@models.example/v1 failed with the same error"
    )
    assert str(error) in stopped
    assert "secret" not in stopped


@pytest.mark.parametrize("retries", [0, 2])
def test_a_port_that_nobody_listens_on_ends_the_run(nobody: int, retries: int) -> None:
    adapter = OpenAIAdapter("m", base_url=f"http://127.0.0.1:{nobody}/v1", api_key_env="")
    texts, stopped = outcomes(adapter, 60, concurrency=4, retries=retries)
    assert REPEATS_AT_FIRST == len(texts)
    assert all(text.endswith(f"({retries + 1} attempt{'s' if retries else ''})") for text in texts[:-1])
    assert (
        f"m at http://127.0.0.1:{nobody}/v1 failed with the same error; check the address, and that the server is"
        in stopped
    )


def test_a_batch_adapter_that_fails_alike_five_times_ends_the_run() -> None:
    adapter = BatchClient(lambda attempt: raising(OSError("no network")))
    texts, stopped = outcomes(adapter, 60, batch_size=4)
    # Two calls for four and, one by one, the five that end the run.
    assert 2 * 4 + REPEATS_AT_FIRST == adapter.attempts.total()
    assert REPEATS_AT_FIRST == len(texts)
    assert "the first 5 requests" in stopped
    assert "no network" in stopped


def test_a_batch_of_which_five_alike_failed_alone_is_asked_no_further() -> None:
    adapter = BatchClient(lambda attempt: raising(OSError("no network")))
    texts, _ = outcomes(adapter, 60, batch_size=30)
    assert (30 + REPEATS_AT_FIRST, REPEATS_AT_FIRST) == (adapter.attempts.total(), len(texts))


def test_a_batch_adapter_that_loses_its_server_later_ends_the_run_within_twenty_requests() -> None:
    adapter = BatchClient(lambda attempt: FINE if attempt <= 8 else raising(ConnectionRefusedError("gone")))
    texts, stopped = outcomes(adapter, 60, batch_size=8)
    assert 8 + REPEATS_LATER == len(texts)
    assert "the last 20 requests" in stopped


def test_calls_that_all_return_too_few_answers_count_as_one_request_each() -> None:
    class Short(BatchClient):
        def generate(self, prompts: Sequence[str]) -> list[Any]:
            return super().generate(prompts)[1:]

    adapter = Short(lambda attempt: FINE)
    assert 4 * (REPEATS_AT_FIRST - 1) + 1 == len(outcomes(adapter, 60, batch_size=4)[0])
    assert 4 * REPEATS_AT_FIRST == adapter.attempts.total()


@pytest.mark.parametrize(
    "error",
    [
        AdapterError("HTTP 401"),
        TransientError("HTTP 429 from /v1/chat/completions: busy"),
        AdapterTimeout("no reply"),
        ConnectionResetError("reset"),
    ],
    ids=repr,
)
def test_what_has_answered_once_is_asked_on_whatever_it_says_later(error: Exception) -> None:
    adapter = Client(lambda attempt: FINE if attempt == 1 else raising(error))
    texts, stopped = outcomes(adapter, 45, concurrency=1, retries=0)
    assert (45, 45, "") == (adapter.attempts.total(), len(texts), stopped)


@pytest.mark.parametrize(
    "errors",
    [
        [TransientError("HTTP 503: busy")],
        [AdapterTimeout("no reply")],
        [RequestRefused("HTTP 400: the content filter")],
        [AdapterError("HTTP 400: 5 tokens"), AdapterError("HTTP 400: 6 tokens")],
        [AdapterError("HTTP 401")] * 4 + [AdapterTimeout("no reply")],
    ],
    ids=repr,
)
def test_errors_that_may_be_of_the_request_or_pass_end_no_run(errors: Sequence[Exception]) -> None:
    adapter = Client(lambda attempt: raising(errors[attempt % len(errors)]))
    texts, stopped = outcomes(adapter, 30, concurrency=1, retries=0)
    assert (30, "") == (len(texts), stopped)


def test_a_refused_request_shows_that_the_server_works() -> None:
    errors = [RequestRefused("too long"), *[ConnectionRefusedError("gone")] * 60]
    adapter = Client(lambda attempt: raising(errors[attempt - 1]))
    texts, _ = outcomes(adapter, 60, concurrency=1, retries=0)
    assert 1 + REPEATS_LATER == len(texts)


def test_errors_of_one_cause_count_where_their_texts_differ() -> None:
    def fail(attempt: int) -> Any:
        error = AdapterError(f"HTTP 401: request {attempt}")
        error.cause = "HTTP 401"
        raise error

    adapter = Client(fail)
    assert REPEATS_AT_FIRST == len(outcomes(adapter, 30)[0]) == adapter.attempts.total()


def test_a_server_that_goes_away_later_ends_the_run_after_twenty_requests_in_a_row() -> None:
    adapter = Client(lambda attempt: FINE if attempt <= 7 else raising(ConnectionRefusedError("gone")))
    texts, stopped = outcomes(adapter, 60, concurrency=1, retries=0)
    assert 7 + REPEATS_LATER == adapter.attempts.total() == len(texts)
    assert "the last 20 requests" in stopped


@pytest.mark.parametrize("other", ["an answer", ConnectionRefusedError("elsewhere"), AdapterError("HTTP 400")])
def test_only_failures_in_a_row_and_alike_count(other: object) -> None:
    def behave(attempt: int) -> Any:
        if attempt == 1:
            return FINE
        if attempt % REPEATS_LATER == 0:
            return raising(other) if isinstance(other, Exception) else other
        return raising(ConnectionRefusedError("here"))

    adapter = Client(behave)
    assert 60 == len(outcomes(adapter, 60, concurrency=1)[0]) == adapter.attempts.total()


@pytest.mark.parametrize("kind", [Client, BatchClient])
def test_a_wait_of_a_day_is_not_waited_for_and_ends_the_run(kind: type[Client]) -> None:
    adapter = kind(lambda attempt: FINE if attempt < 5 else raising(TransientError("HTTP 429: quota", 86_400.0)))
    texts, stopped = outcomes(adapter, 30, concurrency=1, batch_size=1)
    assert (5, texts[-1]) == (adapter.attempts.total(), stopped)
    assert "demands a wait of 86400 s, and a run waits at most 600 s" in stopped
    assert stopped.endswith("HTTP 429: quota")


def test_the_first_request_goes_alone() -> None:
    adapter = Client(lambda attempt: FINE)
    outcomes(adapter, 60, concurrency=8)
    assert [1, 1] == adapter.in_flight[:2]
    assert 8 == max(adapter.in_flight)


def test_the_others_wait_for_the_first_request_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "ALONE_S", 0.05)

    class Slow(Client):
        async def complete(self, request: Generate) -> Any:
            while request.text == "p0" and self.attempts.total() < 7:
                await asyncio.sleep(0.001)
            return await super().complete(request)

    adapter = Slow(lambda attempt: FINE)
    texts, _ = outcomes(adapter, 8, concurrency=8)
    assert ["fine"] * 8 == texts


def test_an_outcome_says_how_many_may_be_in_flight() -> None:
    outage = Outage(Client(lambda attempt: FINE))
    assert 1 == outage.room()
    outage.note(AdapterError("HTTP 401"))
    assert REPEATS_AT_FIRST - 1 == outage.room()
    outage.note(FINE)
    assert outage.room() is None
    assert not isinstance(outage.note(AdapterError("HTTP 401")), AdapterDown)


def _refused() -> AdapterError:
    error = AdapterError("refused")
    error.__cause__ = ConnectionRefusedError()
    return error


def _chained(cause: BaseException, *, hidden: bool = False) -> BaseException:
    error = RuntimeError("the client gave up")
    error.__context__ = cause
    error.__suppress_context__ = hidden
    return error


def _circular() -> BaseException:
    first, second = RuntimeError("1"), RuntimeError("2")
    first.__context__, second.__context__ = second, first
    return first


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError(), True),
        (socket.gaierror(-2, "Name or service not known"), True),
        (_refused(), True),
        (_chained(ConnectionRefusedError()), True),
        (_chained(_chained(socket.gaierror())), True),
        (_chained(ConnectionRefusedError(), hidden=True), False),
        (_circular(), False),
        (TransientError("no usable reply from /v1/completions: ClientConnectorError: Cannot connect"), True),
        (TransientError("no usable reply from /v1/completions: ClientConnectorDNSError: Cannot connect"), True),
        (TransientError("no usable reply from /v1/completions: ClientOSError: reset"), False),
        (AdapterError("said: no usable reply from /v1: ClientConnectorError: x"), False),
        (TimeoutError(), False),
    ],
)
def test_unreachable_is_a_refused_connection_or_an_unknown_host_however_deep(
    error: BaseException, expected: bool
) -> None:
    assert expected == is_unreachable(error)
