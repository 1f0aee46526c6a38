"""What comes back as a completion: text, counts, cost, log-probabilities, and the time it took."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.http.faults import excerpt, retry_after
from pytest_lmeval.adapters.http.reply import parse
from pytest_lmeval.adapters.http.secret import ApiKey
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.adapters.openai.options import read_options
from pytest_lmeval.adapters.openai.response import completion
from pytest_lmeval.errors import AdapterError, TransientError
from pytest_lmeval.types import Completion, Generate, ToolCall
from tests.tables import each_row

from .scripted_server import ScriptedServer, chat, json_reply, says, slow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
PROPERTY_NAMES = st.sampled_from(["content", "refusal", "role", "text"])


def read(document: Any, **options: Any) -> Completion:
    body = json.dumps(document).encode()
    return completion(parse(body, "HTTP 200 from /v1", ApiKey("")), read_options(options), 1.0)


def test_a_chat_completion_has_text_reason_counts_and_latency() -> None:
    expected = Completion("4", 1.0, "stop", 11, 7, served_by="scripted-2026")
    assert expected == read(chat("4"))


@each_row(
    ("told", "served_by"),
    [
        ({"model": "m-2026"}, "m-2026"),
        ({"model": "m-2026", "system_fingerprint": "fp_1"}, "m-2026 (fp_1)"),
        ({"model": None, "system_fingerprint": "fp_1"}, "(fp_1)"),
        ({"model": 5, "system_fingerprint": None}, ""),
        ({"model": "\x1b[2J m" * 99}, ("[2J m" + " [2J m" * 98)[:200]),
    ],
)
def test_what_a_reply_says_of_its_model_is_kept(told: dict[str, Any], served_by: str) -> None:
    assert served_by == read(chat("4") | told).served_by


def test_content_in_parts_is_their_text() -> None:
    parts = [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]
    assert "42" == read(chat(parts)).text


def test_a_completion_of_the_other_endpoint_has_its_text() -> None:
    document = {"choices": [{"text": " 4\n", "finish_reason": "length"}]}
    assert Completion(" 4\n", latency_ms=1.0, finish_reason="length") == read(document, endpoint="completions")


def test_cost_is_per_million_tokens() -> None:
    assert pytest.approx((11 * 2.5 + 7 * 10) / 1e6) == read(chat("4"), price_input=2.5, price_output=10).cost
    assert 0 == read(chat("4"), price_input=0, price_output=0).cost
    assert read(chat("4")).cost is None


@each_row("usage", [None, {}, [], {"prompt_tokens": 3}, {"prompt_tokens": 3, "completion_tokens": None}])
def test_without_counts_there_is_no_cost(usage: Any) -> None:
    answer = read(chat("4") | {"usage": usage}, price_input=1, price_output=1)
    assert (None, None) == (answer.completion_tokens, answer.cost)


@each_row("count", [True, -1, 1.5, "7", [], {}, 10**20])
def test_counts_that_are_none_are_an_error_with_their_value(count: Any) -> None:
    with pytest.raises(AdapterError, match=r"usage: completion_tokens .*; expected a whole number from 0"):
        read(chat("4") | {"usage": {"completion_tokens": count}})
    with pytest.raises(AdapterError, match="expected usage to be an object, got str"):
        read(chat("4") | {"usage": "seven"})


@each_row(
    ("error", "kind"),
    [
        ({"code": 502, "message": "upstream died"}, TransientError),
        ("upstream died", TransientError),
        ({"code": 400, "message": "bad request"}, AdapterError),
    ],
)
def test_an_error_within_a_choice_is_one_of_the_reply(error: Any, kind: type[AdapterError]) -> None:
    document = chat("4")
    document["choices"][0]["error"] = error
    with pytest.raises(AdapterError, match="error in the choice") as caught:
        read(document)
    assert kind is type(caught.value)


@each_row("error", [None, "", {}, False])
def test_no_error_within_a_choice_is_none(error: Any) -> None:
    document = chat("4")
    document["choices"][0]["error"] = error
    assert "4" == read(document).text


def test_what_a_reply_says_twice_decides_nothing() -> None:
    choice = '{"message": {"content": "%s"}}'
    for body in (
        f'{{"choices": [{choice % 4}], "choices": [{choice % 5}]}}',
        '{"choices": [{"message": {"content": "4", "content": "5"}}]}',
        '{"choices": [{"message": {"content": "4"}, "message": {"content": "5"}}]}',
    ):
        with pytest.raises(AdapterError, match=r"the reply has '(choices|content|message)' twice"):
            parse(body.encode(), "HTTP 200", ApiKey(""))
    # What nobody reads may stand there as often as it likes.
    assert parse(b'{"id": 1, "id": 2, "choices": []}', "HTTP 200", ApiKey("")).fields["id"] == 2


def test_log_probabilities_of_chat() -> None:
    document = chat("4")
    document["choices"][0]["logprobs"] = {"content": [{"token": "4", "logprob": -0.25}, {"token": ".", "logprob": 0}]}
    assert (-0.25, 0.0) == read(document).logprobs


def test_log_probabilities_of_completions() -> None:
    document = {"choices": [{"text": "4.", "logprobs": {"tokens": ["4", "."], "token_logprobs": [-0.25, -1]}}]}
    assert (-0.25, -1.0) == read(document, endpoint="completions").logprobs


@each_row("given", [None, {}, [], {"content": None}, {"content": [{}]}, {"token_logprobs": [None, -1]}])
def test_log_probabilities_are_all_numbers_or_none_at_all(given: Any) -> None:
    document = chat("4")
    document["choices"][0]["logprobs"] = given
    assert () == read(document).logprobs


@given(JSON, st.dictionaries(PROPERTY_NAMES, JSON), JSON, JSON)
def test_any_json_is_a_completion_or_an_adapter_error(whole: Any, message: Any, reason: Any, usage: Any) -> None:
    choice = {"message": message, "finish_reason": reason, "logprobs": usage, **message}
    for document in (whole, {"choices": whole}, {"choices": [whole]}, {"choices": [choice], "usage": usage}):
        for endpoint in ("chat", "completions"):
            outcome = text_or_error(document, endpoint)
            assert isinstance(outcome, str) or (str(outcome).isprintable() and len(str(outcome)) < 1000)


def text_or_error(document: Any, endpoint: str) -> Any:
    try:
        return read(document, endpoint=endpoint).text
    except AdapterError as error:
        return error


@given(st.binary())
def test_any_bytes_are_a_completion_or_an_adapter_error(body: bytes) -> None:
    with pytest.raises(AdapterError):
        completion(parse(body, "", ApiKey("")), read_options({}), 1.0)


@given(st.binary(max_size=5000))
def test_an_excerpt_is_one_short_printable_line(body: bytes) -> None:
    assert excerpt(body).isprintable()
    assert len(excerpt(body)) <= 303


@each_row(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"}, 37.0),
        ({"Retry-After": "Sunday, 06-Nov-94 08:49:37 GMT"}, 37.0),
        ({"Retry-After": "Sun Nov  6 08:49:37 1994"}, 37.0),
        ({"Retry-After": "Sun, 06 Nov 1994 08:48:37 GMT"}, 0.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "Sun, 99 Nov 99999999999999 08:49:37 GMT"}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds == retry_after(headers, now=784_111_740.0)


def test_a_date_counts_from_now() -> None:
    wait = retry_after({"Retry-After": email.utils.formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 95 < wait <= 100


@given(st.text(max_size=60))
def test_no_header_makes_retry_after_fail(value: str) -> None:
    wait = retry_after({"Retry-After": value, "retry-after-ms": value})
    assert wait is None or wait >= 0


def test_latency_is_that_of_the_request() -> None:
    async def talk() -> float | None:
        async with ScriptedServer([slow(0.05, says("4"))]) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            answer = await adapter.complete(Generate("2 + 2 ="))
            await adapter.aclose()
            return answer.latency_ms

    latency = asyncio.run(talk())
    assert latency is not None
    assert latency >= 50


def test_the_manifest_notes_every_model_that_answered() -> None:
    def named(model: Any) -> Any:
        return json_reply(chat("4") | {"model": model})

    names = ["m-1", "m-1", "m-2", None, "a\nb", *(f"m-{number}" for number in range(9))]

    async def talk() -> dict[str, Any]:
        async with ScriptedServer([named(name) for name in names]) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            assert {"id": "m"} == adapter.manifest
            for _ in names:
                await adapter.complete(Generate("2 + 2 ="))
            await adapter.aclose()
            return adapter.manifest

    assert {"id": "m", "revision": "m-1, m-2, m-0, m-3, m-4"} == asyncio.run(talk())


# Thoughts and calls


def _message(finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish_reason}]}


@each_row(
    "message",
    [
        pytest.param({"reasoning_content": "A?", "content": "C"}, id="DeepSeek, vLLM, SGLang"),
        pytest.param({"reasoning": "A?", "content": "C"}, id="OpenRouter, newer vLLM, Ollama"),
        pytest.param(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "A?"}]},
                    {"type": "text", "text": "C"},
                ]
            },
            id="Mistral",
        ),
        pytest.param({"content": [{"type": "thinking", "thinking": "A?"}, {"type": "text", "text": "C"}]}, id="text"),
        pytest.param({"reasoning_content": "", "reasoning": "A?", "content": "C"}, id="the field that says something"),
        pytest.param({"reasoning_content": "A?", "content": "\n\nC"}, id="what stood between the two"),
    ],
)
def test_thoughts_are_read_from_the_fields_that_servers_have_for_them(message: dict[str, Any]) -> None:
    found = read(_message(**message))
    assert ("A?", "C") == (found.thoughts, found.text)


@each_row("content", [{"content": None}, {"content": ""}, {}])
def test_thoughts_without_an_answer_are_an_answer_that_is_cut_off(content: dict[str, Any]) -> None:
    found = read(_message("length", reasoning_content="A?", **content))
    assert ("A?", "", True) == (found.thoughts, found.text, found.is_cut_off)


@each_row("thoughts", [{}, {"reasoning_content": ""}, {"reasoning": None}, {"reasoning": 7}])
def test_neither_text_nor_thoughts_are_an_error(thoughts: dict[str, Any]) -> None:
    with pytest.raises(AdapterError, match="no text"):
        read(_message("length", content=None, **thoughts))


@pytest.mark.parametrize(
    "usage",
    [
        {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
        {"completion_tokens": 9, "reasoning_tokens": 7},
    ],
)
def test_reasoning_tokens_are_counted_apart(usage: dict[str, Any]) -> None:
    found = read(chat("C") | {"usage": usage})
    assert (9, 7) == (found.completion_tokens, found.reasoning_tokens)


def test_calls_of_one_reply_are_all_read_with_their_arguments_as_written() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1'}},
        {"id": None, "type": "function", "function": {"name": "sub", "arguments": {"a": 1}}},
    ]
    found = read(_message("tool_calls", content=None, tool_calls=calls))
    assert (ToolCall("a", "add", '{"a": 1'), ToolCall("", "sub", '{"a": 1}')) == found.tool_calls
    assert "" == found.text


def test_a_reply_may_have_both_text_and_calls() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    found = read(_message(content="Let me see.", tool_calls=calls))
    assert ("Let me see.", 1) == (found.text, len(found.tool_calls))


@each_row("calls", ["add", [{}], [{"function": {"name": 3}}], [None], {"name": "add"}])
def test_calls_that_are_none_are_an_error(calls: Any) -> None:
    with pytest.raises(AdapterError, match="tool_calls that are not a list of function calls"):
        read(_message(content="x", tool_calls=calls))
