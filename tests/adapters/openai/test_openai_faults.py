"""Whatever a server does to a request ends in the right error, after one request, with the key nowhere in it."""

from __future__ import annotations

import asyncio
import gzip
import socket
import tracemalloc
from typing import Any

import pytest

from pytest_lmeval.adapters.http.faults import worth_retrying
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.errors import AdapterError, AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.types import Generate

from .asking import PATH, ask, ask_elsewhere, assert_no_key, fails
from .scripted_server import (
    ScriptedServer,
    Step,
    chat,
    compressed,
    cut_off,
    drips,
    hangs,
    json_reply,
    never_ends,
    raw,
    replies,
    resets,
    says,
    serving,
    status,
)


@pytest.mark.parametrize("code", [400, 404])
def test_any_other_refusal_is_final(code: int) -> None:
    fails(AdapterError, [status(code), says("4")], f"HTTP {code} from {PATH}", "scripted")


@pytest.mark.parametrize("code", [300, 399])
def test_a_status_that_is_no_success_is_no_answer(code: int) -> None:
    fails(AdapterError, [json_reply(chat("4"), code)], f"HTTP {code} from {PATH}")


def test_only_these_statuses_are_worth_retrying() -> None:
    assert [408, 409, 429, *range(500, 600)] == [code for code in range(100, 1000) if worth_retrying(code)]


def test_too_many_requests_says_how_long_to_wait() -> None:
    outcome = fails(TransientError, [status(429, Retry_After="7")], "HTTP 429")
    assert isinstance(outcome.error, TransientError)
    assert 7.0 == outcome.error.retry_after


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(resets(), id="before a byte"),
        pytest.param(resets(b"HTTP/1.1 200 OK\r\nContent-Le"), id="in the head"),
        pytest.param(resets(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"), id="in the body"),
        pytest.param(raw(b""), id="orderly, before a byte"),
    ],
)
def test_a_reset_may_be_asked_again(step: Step) -> None:
    fails(TransientError, [step], "no usable reply", PATH)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_truncated_body_may_be_asked_again(chunked: bool) -> None:
    fails(TransientError, [cut_off(chunked=chunked)], PATH)


def test_truncated_gzip_may_be_asked_again() -> None:
    body = gzip.compress(b'{"choices": [' + b" " * 5000)[:-12]
    fails(TransientError, [replies(200, body, {"Content-Encoding": "gzip"})], "ended too early", PATH)


def test_a_chunked_body_that_never_ends_stops_at_the_cap() -> None:
    fails(
        AdapterError,
        [never_ends()],
        "the reply has more than 20000 bytes; see max_response_bytes",
        PATH,
        max_response_bytes=20_000,
    )


@pytest.mark.parametrize(
    "step", [never_ends(chunk=b" ", pause=0.01), drips(), hangs()], ids=["chunks", "drips", "hangs"]
)
def test_a_server_that_is_not_done_in_time_stops_at_the_timeout(step: Step) -> None:
    outcome = ask([step], timeout=1.0)
    assert isinstance(outcome.error, TransientError)
    assert isinstance(outcome.error, AdapterTimeout)
    assert f"no reply from {PATH} within 1.0 s" in str(outcome.error)
    assert 1 == outcome.requests
    assert_no_key(outcome.text)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        pytest.param(b'{"choices": [', "invalid JSON", id="half a document"),
        pytest.param(b"maintenance", "invalid JSON: maintenance", id="not JSON"),
        pytest.param(b'"\xff"', "invalid JSON", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "invalid JSON", id="too deep"),
        pytest.param(b"[]", "expected a JSON object, got list", id="not an object"),
    ],
)
def test_a_reply_that_is_no_json_object_is_final(body: bytes, what: str) -> None:
    fails(AdapterError, [replies(200, body), says("4")], f"HTTP 200 from {PATH}", what)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        pytest.param(b"", "invalid JSON: empty body", id="nothing"),
        pytest.param(b" \n", "invalid JSON", id="blanks"),
        pytest.param(b"\n<!doctype html><p>maintenance", "<p>maintenance", id="the page of a proxy"),
        pytest.param(b'{"error": "out of memory"}', "out of memory", id="a text"),
        pytest.param(b'{"error": {"message": "come back", "code": 503}}', "come back", id="a status"),
        pytest.param(b'{"error": {"message": "slow down", "code": "429"}}', "slow down", id="a status as text"),
        pytest.param(b'{"error": {"type": "overloaded_error", "code": null}}', "overloaded", id="a kind"),
        pytest.param(b'{"error": {"message": "worker died"}}', "worker died", id="no kind"),
    ],
)
def test_a_failure_in_passing_that_is_said_with_status_200_may_be_asked_again(body: bytes, what: str) -> None:
    fails(TransientError, [replies(200, body), says("4")], f"HTTP 200 from {PATH}", what)


@pytest.mark.parametrize(
    ("document", "what"),
    [
        pytest.param({"error": {"message": "no such model", "code": 404}}, "error object", id="error"),
        pytest.param({"error": {"message": "?", "code": "400"}}, "error object", id="error of the request"),
        pytest.param({"error": {"type": "invalid_request_error"}}, "error object", id="error of a kind"),
        pytest.param({"error": {"type": "server_error", "code": "insufficient_quota"}}, "quota", id="no credit"),
        pytest.param(chat([{"type": "image_url"}]), "no text", id="a part that is no text"),
        pytest.param(chat([{"type": "text", "text": 4}]), "no text", id="a text that is none"),
        pytest.param(chat([]), "no text", id="no parts"),
        pytest.param({}, "no choices", id="empty object"),
        pytest.param({"choices": []}, "no choices", id="empty choices"),
        pytest.param({"choices": None}, "no choices", id="null choices"),
        pytest.param({"choices": ["4"]}, "expected a choice to be an object, got str", id="choice of text"),
        pytest.param({"choices": [{"text": "4"}]}, "a choice without a message", id="no message"),
        pytest.param(chat(None), "no text (finish_reason 'stop')", id="null content"),
        pytest.param(chat(None, "length"), "all tokens allowed were used", id="null content, out of tokens"),
        pytest.param(chat(None, "tool_calls", tool_calls=[]), "no text (finish_reason 'tool_calls')", id="tool call"),
        pytest.param(chat(None, refusal=""), "no text", id="empty refusal"),
        pytest.param(chat(None, "content_filter"), "stopped by a content filter", id="filtered"),
        pytest.param(chat("The answ", "content_filter"), "stopped by a content filter", id="filtered midway"),
    ],
)
def test_a_reply_without_an_answer_is_final(document: dict[str, Any], what: str) -> None:
    of_this_answer = "no text" in what or "all tokens" in what or "content filter" in what
    kind = RequestRefused if of_this_answer else AdapterError
    fails(kind, [json_reply(document), says("4")], f"HTTP 200 from {PATH}", what)


@pytest.mark.parametrize(
    ("code", "body", "kind", "cause"),
    [
        (401, '{"error": {"message": "bad key", "request_id": "1"}}', AdapterError, f"HTTP 401 from {PATH}"),
        (404, "no such model", AdapterError, f"HTTP 404 from {PATH}"),
        (400, '{"error": {"code": "unsupported_parameter"}}', AdapterError, ""),
        (400, '{"error": {"code": "content_filter"}}', RequestRefused, ""),
        (400, '{"error": {"code": "context_length_exceeded"}}', RequestRefused, ""),
        (413, "the prompt is too long", RequestRefused, ""),
    ],
)
def test_a_refusal_tells_whether_it_is_of_every_request_or_of_this_one(
    code: int, body: str, kind: type[AdapterError], cause: str
) -> None:
    outcome = fails(kind, [status(code, body)], f"HTTP {code}")
    assert isinstance(outcome.error, AdapterError)
    assert cause == outcome.error.cause


def test_not_found_at_an_address_without_a_version_says_so() -> None:
    async def talk(path: str) -> str:
        async with ScriptedServer([status(404)]) as server:
            adapter = OpenAIAdapter("m", base_url=f"http://127.0.0.1:{server.port}{path}")
            with pytest.raises(AdapterError) as caught:
                await adapter.complete(Generate("x"))
            await adapter.aclose()
            return str(caught.value).replace(str(server.port), "PORT")

    assert "; base_url has no /v1; try http://127.0.0.1:PORT/v1" in asyncio.run(talk(""))
    assert "base_url" not in asyncio.run(talk("/v1"))
    assert "base_url" not in asyncio.run(talk("/openai/v1beta/x"))


@pytest.mark.parametrize("content", [None, ""])
def test_a_refusal_is_an_answer(content: str | None) -> None:
    outcome = ask([json_reply(chat(content, refusal="I will not add."))])
    assert outcome.completion is not None
    assert ("I will not add.", "refusal") == (outcome.completion.text, outcome.completion.finish_reason)


@pytest.mark.parametrize(("code", "kind"), [(200, AdapterError), (503, TransientError)])
def test_a_gzip_bomb_ends_at_the_cap(code: int, kind: type[AdapterError]) -> None:
    bomb = compressed(b" " * 20_000_000, code=code)
    tracemalloc.start()
    try:
        fails(kind, [bomb], f"HTTP {code}", max_response_bytes=10_000_000 if code == 503 else 100_000)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_of_empty_blocks_ends_at_the_cap() -> None:
    flushes = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 10_000
    step = replies(200, flushes, {"Content-Encoding": "gzip"})
    fails(AdapterError, [step], "more than 20000 bytes", max_response_bytes=20_000)


def test_a_body_that_is_not_what_its_encoding_says_is_final() -> None:
    fails(AdapterError, [replies(200, b"{}", {"Content-Encoding": "gzip"})], "cannot be decompressed")


def test_an_encoding_that_was_not_asked_for_is_final() -> None:
    fails(AdapterError, [replies(200, b"{}", {"Content-Encoding": "br"})], "content encoding 'br'")


@pytest.mark.parametrize("step", [never_ends(500), cut_off(500, b"x" * 50), never_ends(500, b"x" * 40, 0.01)])
def test_the_status_counts_whatever_becomes_of_an_error_body(step: Step) -> None:
    fails(TransientError, [step], f"HTTP 500 from {PATH}", timeout=1.5)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", id="bad header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", id="endless header"),
    ],
)
def test_what_is_not_http_is_final(data: bytes) -> None:
    fails(AdapterError, [raw(data)], f"no usable reply from {PATH}")


def test_nobody_listening_may_be_asked_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        fails(TransientError, [says("4")], "Cannot connect", requests=0, base_url=base_url)


def test_a_name_that_cannot_be_one_is_final() -> None:
    outcome = ask_elsewhere(f"http://{'x' * 70}.invalid/v1")
    assert AdapterError is type(outcome)


@pytest.mark.parametrize(
    ("own_s", "of_run_s", "said"),
    [(60.0, 0.5, "no response within 0.5 s (--lm-timeout)"), (0.5, 60.0, f"no reply from {PATH} within 0.5 s")],
)
def test_the_shorter_of_the_adapters_and_the_runs_time_limit_ends_a_request(
    own_s: float, of_run_s: float, said: str
) -> None:
    with serving([hangs()]) as server:
        engine = Engine(
            OpenAIAdapter("m", base_url=server.base_url, timeout=own_s), Policy(timeout_s=of_run_s, retries=0)
        )
        with pytest.raises(AdapterTimeout) as late:
            engine.respond("key", lambda key: [Generate("2 + 2 =")])
        engine.close()
    assert f"{said} (1 attempt)" == str(late.value)
