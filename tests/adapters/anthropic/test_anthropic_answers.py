"""What a message becomes, and that a stream of it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError
from pytest_lmeval.types import Completion, Generate, ToolCall
from tests.adapters.openai.scripted_server import Step, head, json_reply, raw, replies

from .asking import answer, refused
from .messages_server import call, events_of, message, sent, speaks, text, thought

OPEN = {"Content-Type": "text/event-stream", "Connection": "close"}
CALLS = (call("t1", "look", at=2, where="hé\n"), call("t2", "stop"))
SAID = Completion("", None, "stop", 11, 7, served_by="claude-scripted-2026")
MESSAGES: dict[str, tuple[dict[str, Any], Completion]] = {
    "text": (message(text("4"), text("2é")), replace(SAID, text="42é")),
    "an empty text": (message(text("")), SAID),
    "a turn that ended without a word": (message(), SAID),
    "calls": (
        message(text("hm"), *CALLS, stop_reason="tool_use"),
        replace(
            SAID,
            text="hm",
            finish_reason="tool_calls",
            tool_calls=(ToolCall("t1", "look", '{"at": 2, "where": "h\\u00e9\\n"}'), ToolCall("t2", "stop", "{}")),
        ),
    ),
    "a call alone": (
        message(CALLS[1], stop_reason="tool_use"),
        replace(SAID, finish_reason="tool_calls", tool_calls=(ToolCall("t2", "stop", "{}"),)),
    ),
    "a long name": (message(text("4"), model="m" * 999), replace(SAID, text="4", served_by="m" * 200)),
    "thoughts": (
        message(thought("let me"), {"type": "redacted_thinking", "data": "x"}, thought(" see"), text("\n\n4")),
        replace(SAID, text="4", thoughts="let me see"),
    ),
    "thoughts alone": (
        message(thought("hm"), stop_reason="max_tokens"),
        replace(SAID, finish_reason="length", thoughts="hm"),
    ),
    "a refusal": (message(text("I"), stop_reason="refusal"), replace(SAID, text="I", finish_reason="refusal")),
    "tokens of a cache and of thoughts": (
        message(
            text("4"),
            usage={
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 1000,
                "output_tokens": 20,
                "output_tokens_details": {"thinking_tokens": 5},
            },
        ),
        replace(SAID, text="4", prompt_tokens=1111, completion_tokens=20, reasoning_tokens=5),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_a_completion_in_one_piece_and_streamed(name: str) -> None:
    given, expected = MESSAGES[name]
    whole, streamed = answer(speaks(given)), answer(speaks(given), stream=True)
    assert expected == replace(whole, latency_ms=None, extra="")
    assert whole.latency_ms is not None
    assert replace(whole, latency_ms=None) == replace(streamed, latency_ms=None, ttft_ms=None)
    has_content = bool(expected.text or expected.thoughts or expected.tool_calls)
    assert has_content == (streamed.ttft_ms is not None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        ("\x1b[2J", "[2J"),
    ],
)
def test_a_stop_reason_is_a_finish_reason(given: str, reason: str) -> None:
    found = answer(speaks(message(text("4"), stop_reason=given)))
    assert (reason, reason == "length") == (found.finish_reason, found.is_cut_off)


def test_a_stop_of_blanks_which_the_server_takes_none_of_cuts_the_answer_here() -> None:
    request = Generate("hi", stop=("\n", "END"))
    found = answer(speaks(message(text("4\n5"), *CALLS, stop_reason="tool_use")), request)
    assert ("4", "stop", ()) == (found.text, found.finish_reason, found.tool_calls)


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({}, None),
        ({"price_input": 3, "price_output": 15}, (1111 * 3 + 20 * 15) / 1e6),
        (
            {"price_input": 3, "price_output": 15, "price_cache_write": 3.75, "price_cache_read": 0.3},
            (11 * 3 + 100 * 3.75 + 1000 * 0.3 + 20 * 15) / 1e6,
        ),
    ],
)
def test_the_cost_is_that_of_all_tokens(prices: dict[str, Any], cost: float | None) -> None:
    given, _ = MESSAGES["tokens of a cache and of thoughts"]
    assert pytest.approx(cost) == answer(speaks(given), **prices).cost


@pytest.mark.parametrize(
    ("document", "kind", "said"),
    [
        (message(stop_reason="max_tokens"), RequestRefused, "all tokens allowed were used before any text"),
        ({"content": None}, AdapterError, "no content"),
        ({"content": ["4"]}, AdapterError, "no content"),
        ({}, AdapterError, "no content"),
        ([], AdapterError, "expected a JSON object"),
        (message({"type": "text", "text": 4}), AdapterError, "a block text without its text"),
        (message({"type": "image"}), AdapterError, "a block 'image'; expected text, thinking or tool_use"),
        (message({"type": "tool_use", "id": "a", "name": "b", "input": [1]}), AdapterError, "without name or input"),
        (message(text("4"), usage={"input_tokens": -1}), AdapterError, "usage: "),
        (message(text("4"), usage={"output_tokens": "7"}), AdapterError, "usage: "),
        (message(text("4")) | {"usage": 5}, AdapterError, "expected usage to be an object"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, TransientError, "error object"),
        ({"type": "error", "error": {"type": "invalid_request_error"}}, AdapterError, "error object"),
    ],
)
def test_what_is_no_message_is_an_error(document: Any, kind: type[AdapterError], said: str) -> None:
    error = refused(json_reply(document))
    assert (kind, True) == (type(error), said in str(error))


def test_a_name_that_is_said_twice_is_an_error() -> None:
    body = b'{"content": [{"type": "text", "text": "4"}], "content": [], "stop_reason": "end_turn"}'
    assert "the reply has 'content' twice" in str(refused(replies(200, body)))


# Streams


def streams(*events: dict[str, Any]) -> Step:
    """Send events and hang up."""
    return raw(head(200, OPEN) + b"".join(sent(event) for event in events))


WHOLE = [*events_of(message(text("four"), *CALLS, stop_reason="tool_use"))]


def test_a_stream_that_breaks_off_is_asked_again() -> None:
    for length in range(1, len(WHOLE) - 2):  # the last two say that the answer ended
        error = refused(streams(*WHOLE[:length]), stream=True)
        assert isinstance(error, TransientError)
        assert "the body ended too early" in str(error)


def piece(index: Any, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "x", **delta}}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([WHOLE[0], *WHOLE], id="a message twice"),
        pytest.param([*WHOLE[:3], WHOLE[2], *WHOLE[3:]], id="a block twice"),
        pytest.param(WHOLE[2:], id="a block before its message"),
        pytest.param([*WHOLE[:2], *WHOLE[3:]], id="a piece before its block"),
        pytest.param([*WHOLE[:3], piece(0, text=5), *WHOLE[3:]], id="a piece that is no text"),
        pytest.param(
            [*WHOLE[:3], {"type": "content_block_delta", "index": 0}, *WHOLE[3:]], id="a piece without a delta"
        ),
        pytest.param([*WHOLE[:3], piece("0"), *WHOLE[3:]], id="a piece of a block that is no number"),
    ],
)
def test_events_out_of_their_places_are_an_error(events: Sequence[dict[str, Any]]) -> None:
    assert "no content" in str(refused(streams(*events), stream=True))


def test_events_and_pieces_of_kinds_to_come_are_passed_over() -> None:
    events = [{"type": "new"}, *WHOLE[:3], piece(0, type="citations_delta"), *WHOLE[3:], {"type": "message_start"}]
    assert "four" == answer(streams(*events[:-1]), stream=True).text


@pytest.mark.parametrize(
    ("kind", "error"), [("overloaded_error", TransientError), ("invalid_request_error", AdapterError)]
)
def test_an_error_in_a_stream_is_the_reply(kind: str, error: type[AdapterError]) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "no luck"}}
    found = refused(streams(*WHOLE[:6], event), stream=True)
    assert (error, True) == (type(found), "no luck" in str(found))


def test_an_error_without_an_object_is_one_too() -> None:
    assert "error object" in str(refused(raw(head(200, OPEN) + b'data: {"type": "error"}\n\n'), stream=True))


def test_arguments_that_were_cut_off_are_the_text_that_came() -> None:
    events = [event for event in WHOLE if event.get("index") != 2]
    cut = [*events[:-5], *events[-3:]]
    found = answer(streams(*cut), stream=True)
    assert None is found.tool_calls[0].values
    assert found.tool_calls[0].arguments.startswith('{"at": 2')


def test_a_server_that_does_not_stream_is_read_as_ever() -> None:
    found = answer(json_reply(message(text("4"))), stream=True)
    assert ("4", None) == (found.text, found.ttft_ms)
