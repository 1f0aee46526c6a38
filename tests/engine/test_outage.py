"""A server that is not there is not asked for every example; one that answers anything at all is."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter
from pytest_lmeval.engine import streaming
from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.outage import ALIKE, Outage, is_unreachable
from pytest_lmeval.engine.policy import Policy
from pytest_lmeval.errors import AdapterError, AdapterTimeout, TransientError
from pytest_lmeval.types import Completion, Generate

REFUSED = "(not asked: the last 20 requests failed alike)"


class Client:
    """Does what ``behave`` says with the number of the attempt, and counts the attempts at each prompt."""

    name = "client"

    def __init__(self, behave: Callable[[int], Any]) -> None:
        self.behave = behave
        self.attempts: Counter[str] = Counter()

    async def complete(self, request: Generate) -> Any:
        await asyncio.sleep(0)
        self.attempts[request.text] += 1
        return self.behave(self.attempts.total())


def outcomes(adapter: Any, examples: int, **policy: Any) -> list[str]:
    """Ask one prompt per example and return the answers, or error texts, in order."""
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
    engine.close()
    return texts


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "backoff_s", lambda attempt, retry_after: 0.0)


@pytest.fixture
def nobody() -> Iterator[int]:
    """Provide a port of this machine that is taken, and that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def raising(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_port_that_nobody_listens_on_is_not_asked_for_every_example(
    nobody: int, concurrency: int, retries: int
) -> None:
    adapter = Client(lambda attempt: socket.create_connection(("127.0.0.1", nobody)))
    texts = outcomes(adapter, 60, concurrency=concurrency, retries=retries)
    asked = [text for text in texts if not text.endswith(REFUSED)]
    assert ALIKE <= len(asked) < ALIKE + concurrency
    assert len(asked) == adapter.attempts.total()
    assert all("ConnectionRefusedError" in text for text in texts)


def test_the_http_adapter_tries_each_of_the_first_as_often_as_it_may(
    nobody: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: Counter[str] = Counter()
    complete = OpenAIAdapter.complete

    async def counted(self: OpenAIAdapter, request: Generate) -> Completion:
        attempts[request.text] += 1
        return await complete(self, request)

    monkeypatch.setattr(OpenAIAdapter, "complete", counted)
    adapter = OpenAIAdapter("m", base_url=f"http://127.0.0.1:{nobody}/v1", api_key_env="")
    texts = outcomes(adapter, 30, concurrency=1, retries=1)
    assert {f"p{number}": 2 for number in range(ALIKE)} == attempts
    assert all(text.endswith("(2 attempts)") for text in texts[:ALIKE])
    (refused,) = set(texts[ALIKE:])
    assert texts[0].replace("(2 attempts)", REFUSED) == refused


@pytest.mark.parametrize(
    "error",
    [
        AdapterError("HTTP 400 from /v1/chat/completions: ClientConnectorError: no"),
        TransientError("HTTP 429 from /v1/chat/completions: busy"),
        AdapterTimeout("no reply"),
        ConnectionResetError("reset"),
        ValueError("[Errno 111] Connection refused"),
    ],
)
def test_a_failure_of_a_request_is_never_taken_for_a_server_that_is_gone(error: Exception) -> None:
    adapter = Client(lambda attempt: raising(error))
    texts = outcomes(adapter, 45, concurrency=1, retries=0)
    assert 45 == adapter.attempts.total()
    assert not any(text.endswith(REFUSED) for text in texts)


@pytest.mark.parametrize("other", ["an answer", ConnectionRefusedError("elsewhere"), AdapterError("HTTP 400")])
def test_only_failures_in_a_row_and_alike_count(other: object) -> None:
    def behave(attempt: int) -> Any:
        if attempt % ALIKE == 0:
            return raising(other) if isinstance(other, Exception) else other
        return raising(ConnectionRefusedError("here"))

    adapter = Client(behave)
    outcomes(adapter, 60, concurrency=1)
    assert 60 == adapter.attempts.total()


def test_an_answer_that_was_still_on_its_way_lifts_the_outage() -> None:
    outage = Outage()
    for _ in range(ALIKE):
        assert outage.refusal() is None
        outage.note(_refused())
    assert f"refused {REFUSED}" == str(outage.refusal())
    outage.note(Completion("late"))
    assert outage.refusal() is None


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
