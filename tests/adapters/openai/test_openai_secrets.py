"""However a server spreads the key, no error, traceback or answer does."""

from __future__ import annotations

import asyncio

import pytest

from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.types import Generate

from .asking import KEY, PATH, ask, assert_no_key, shown
from .scripted_server import Exchange, ScriptedServer, Step, chat, cut_off, hangs, json_reply, raw, says


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"Content-Length: 99\r\n\r\n{", id="truncated"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", id="bad chunk"),
        pytest.param(b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="not gzip"),
        pytest.param(b"Content-Length: 999999999\r\n\r\n" + b" " * 5000, id="too long"),
    ],
)
def test_a_head_that_echoes_the_key_does_not_spread_it(rest: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nX-Sent: Bearer {KEY}\r\n".encode()
    outcome = ask([raw(head + rest)], max_response_bytes=1000)
    assert outcome.error is not None
    assert_no_key(outcome.text)


def test_the_beginning_of_a_key_at_the_end_of_a_truncated_error_is_left_out() -> None:
    outcome = ask([cut_off(500, b"This is not for you. " * 9 + b"You sent: " + KEY[:20].encode())])
    assert "This is not for you." in str(outcome.error)
    assert KEY[:4] not in outcome.text


@pytest.mark.parametrize("head", ["", "HTTP/1.1 200 OK\r\nX: %s\r\nContent-Length: 9\r\n\r\n"])
def test_a_cancelled_request_leaves_the_key_out_of_its_traceback(head: str) -> None:
    async def talk() -> str:
        async with ScriptedServer([hangs(head.replace("%s", KEY).encode())]) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.1):
                    await adapter.complete(Generate("2 + 2 ="))
            await adapter.aclose()
            return shown(caught.value)

    text = asyncio.run(talk())
    assert "CancelledError" in text
    assert "in complete" in text
    assert_no_key(text)


def echoes(code: int, where: str) -> Step:
    """Send the whole Authorization header back, as a proxy that explains too much would."""

    async def step(exchange: Exchange) -> None:
        sent = exchange.seen.headers["authorization"]
        if where == "location":
            await exchange.reply(code, b"", {"Location": f"http://{KEY.lower()}.example/?{sent}"})
        elif where == "path":
            await exchange.reply(code, b"", {"Location": f"/{sent.split()[1]}" if exchange.seen.target == PATH else ""})
        elif where == "header":
            await exchange.reply(code, b"no", {"X-Sent": sent, "Retry-After": sent})
        elif where == "end":
            await exchange.reply(code, b"x" * (64 * 1024 - 20) + sent.encode() + b"x" * 999)
        else:
            await exchange.reply(code, b'{"choices": [], "error": "you sent ' + sent.encode() + b'"}')

    return step


@pytest.mark.parametrize("code", [200, 401, 500])
@pytest.mark.parametrize("where", ["body", "header", "end"])
def test_a_server_that_echoes_the_key_does_not_spread_it(code: int, where: str) -> None:
    outcome = ask([echoes(code, where)])
    assert outcome.error is not None
    assert_no_key(outcome.text)


def test_a_finish_reason_that_is_the_key_does_not_spread_it() -> None:
    outcome = ask([json_reply(chat(None, finish_reason=KEY))])
    assert "no text (finish_reason '***')" in str(outcome.error)
    assert_no_key(outcome.text)


@pytest.mark.parametrize("where", ["location", "path"])
def test_a_redirect_that_echoes_the_key_does_not_spread_it(where: str) -> None:
    outcome = ask([echoes(307, where)])
    assert outcome.error is not None
    assert_no_key(outcome.text)
    assert where == "location" or "***" in str(outcome.error)


def test_a_short_key_is_masked_in_errors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    assert "you sent Bearer ***" in str(ask([echoes(401, "body")]).error)
    assert "you sent Bearer ***" in str(ask([echoes(200, "body")]).error)
    outcome = ask([says("EMPTY")])
    assert outcome.completion is not None
    assert "EMPTY" == outcome.completion.text


def test_an_answer_that_holds_the_key_reaches_the_application_and_what_keeps_it_knows_the_key() -> None:
    outcome = ask([says(f"Your header was Bearer {KEY}.")])
    assert outcome.completion is not None
    assert f"Your header was Bearer {KEY}." == outcome.completion.text
    adapter = OpenAIAdapter("m", base_url="http://127.0.0.1:9")
    assert "Your header was Bearer ***." == Scrubber(adapter.known_secrets).scrub_answer(outcome.completion).text
