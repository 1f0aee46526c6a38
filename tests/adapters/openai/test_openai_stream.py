"""An answer that comes in events is the answer in one piece, with the time until its first content."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.http.events import EventStream
from pytest_lmeval.adapters.openai.stream import StreamedChoice
from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError
from pytest_lmeval.types import Completion, ToolCall
from tests.conftest import Project

from .asking import KEY, ask, assert_no_key, fails
from .scripted_server import Exchange, Step, head, raw, replies, says, serving

USAGE = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}
OPEN = {"Content-Type": "text/event-stream", "Connection": "close"}
DONE = "[DONE]"


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted-2026", "choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def calls(*pieces: dict[str, Any]) -> dict[str, Any]:
    return delta(tool_calls=list(pieces))


def written(text: str, logprob: float, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"text": text, "finish_reason": reason, "logprobs": {"token_logprobs": [logprob]}}]}


def piece(arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {**more, "function": {**name, "arguments": arguments}}


STOP = delta("stop")


def sent(*events: Any) -> bytes:
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def streams(*events: Any) -> Step:
    """Send all the events and hang up, which alone does not say that the body is whole."""
    return raw(head(200, OPEN) + sent(*events))


def in_time(events: Sequence[Any], pause: float) -> Step:
    """Send a role at once, then event by event."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(head(200, OPEN) + sent(delta(role="assistant", content="")))
        for event in events:
            await asyncio.sleep(pause)
            await exchange.send(sent(event))
        exchange.close()

    return step


def answer(*events: Any, **options: Any) -> Completion:
    outcome = ask([streams(*events)], stream=True, **options)
    assert outcome.completion is not None, outcome.error
    return outcome.completion


def test_a_stream_is_asked_for_with_its_usage_and_only_where_it_is_wanted() -> None:
    with serving([streams(delta("stop", content="4"), DONE), says("4")]) as server:
        ask_at = {"base_url": server.base_url}
        ask([], stream=True, **ask_at)
        ask([], **ask_at)
    asked, plain = (request.json for request in server.requests)
    assert {"stream": True, "stream_options": {"include_usage": True}} == {
        name: asked[name] for name in asked.keys() - plain.keys()
    }


def test_text_in_pieces_is_the_same_completion_as_in_one() -> None:
    streamed = answer(delta(role="assistant", content=""), delta(content="4"), delta(content="2é"), STOP, USAGE, DONE)
    whole = ask([says("42é")]).completion
    assert whole is not None
    assert streamed.ttft_ms is not None
    assert replace(whole, latency_ms=None) == replace(streamed, latency_ms=None, ttft_ms=None)


@pytest.mark.parametrize(
    ("events", "options", "expected"),
    [
        pytest.param(
            [written(" 4", -0.5), written("2", -1, "length")],
            {"endpoint": "completions", "logprobs": True},
            Completion(" 42", finish_reason="length", logprobs=(-0.5, -1.0)),
            id="the other endpoint",
        ),
        pytest.param(
            [{"choices": [{"delta": {"content": text}, "logprobs": {"content": [{"logprob": -1}]}}]} for text in "42"]
            + [STOP],
            {"logprobs": True},
            Completion("42", finish_reason="stop", logprobs=(-1.0, -1.0)),
            id="log-probabilities",
        ),
        pytest.param(
            [delta(reasoning_content="h"), delta(reasoning_content="m"), delta(content="4"), STOP],
            {},
            Completion("4", finish_reason="stop", thoughts="hm"),
            id="thoughts",
        ),
        pytest.param(
            [delta(reasoning="hm"), delta("length")],
            {},
            Completion("", finish_reason="length", thoughts="hm"),
            id="thoughts alone",
        ),
        pytest.param(
            [delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]) for text in "hm"]
            + [delta(content=[{"type": "text", "text": "4"}]), STOP],
            {},
            Completion("4", finish_reason="stop", thoughts="hm"),
            id="thoughts in parts",
        ),
        pytest.param(
            [delta(refusal="I"), delta(refusal=" won't"), STOP],
            {},
            Completion("I won't", finish_reason="refusal"),
            id="refusal",
        ),
        pytest.param(
            [{"choices": [{"index": 1, "delta": {"content": "no"}}]}, delta("stop", content="4")],
            {},
            Completion("4", finish_reason="stop"),
            id="another choice beside the first",
        ),
    ],
)
def test_what_comes_in_events_is_put_together(events: list[Any], options: dict[str, Any], expected: Completion) -> None:
    found = answer(*events, DONE, **options)
    assert found.ttft_ms is not None
    assert expected == replace(found, latency_ms=None, ttft_ms=None, served_by="", extra="")


def test_the_fingerprint_of_the_model_is_kept_out_of_any_event() -> None:
    found = answer(delta(content="4"), {"system_fingerprint": "fp_1", "choices": []}, STOP, DONE)
    assert "scripted-2026 (fp_1)" == found.served_by


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [
                calls(piece("", index=0, id="a", name="add")),
                calls(piece('{"x"', index=0)),
                calls(piece("{", index=1, id="b", name="sub"), piece(": 1}", index=0)),
                calls(piece("}", index=1)),
            ],
            id="by index",
        ),
        pytest.param(
            [calls(piece('{"x": 1}', index=0, id="a", name="add")), calls(piece("{}", index=0, id="b", name="sub"))],
            id="one index for all, told apart by id",
        ),
        pytest.param(
            [
                calls(piece('{"x"', id="a", name="add")),
                calls(piece(": 1}", id="a", name="add")),
                calls(piece("{}", id="b", name="sub")),
            ],
            id="no index, the name with every piece",
        ),
    ],
)
def test_calls_of_tools_are_put_together(events: list[Any]) -> None:
    found = answer(*events, delta("tool_calls"), DONE)
    assert (ToolCall("a", "add", '{"x": 1}'), ToolCall("b", "sub", "{}")) == found.tool_calls
    assert found.ttft_ms is not None


RIGA, OSLO = ("weather", '{"city": "Riga"}'), ("weather", '{"city": "Oslo"}')
TIME = ("time", "{}")
LIKE = {
    "an index each": lambda number: {"index": number},
    "an index each, as text, and ids": lambda number: {"index": str(number), "id": f"c{number}"},
    "an index each from 1, one id": lambda number: {"index": number + 1, "id": "same"},
    "one index, ids": lambda number: {"index": 0, "id": f"c{number}"},
    "one index, empty ids": lambda number: {"index": 0, "id": ""},
    "one index, no ids": lambda number: {"index": 0},
    "one index, ids that are null": lambda number: {"index": 0, "id": None},
    "no index, ids": lambda number: {"id": f"c{number}"},
    "no index, no ids": lambda number: {},
    "null for both": lambda number: {"index": None, "id": None},
    "no index, one id": lambda number: {"id": "same"},
}


@given(
    st.lists(st.sampled_from([RIGA, OSLO, TIME]), min_size=1, max_size=3),
    st.sampled_from([*LIKE.values()]),
    st.lists(st.integers(0, 17), max_size=3),
    st.sampled_from(["first", "each", "alone", "alone, id once", "each, and at the end"]),
    st.booleans(),
)
def test_calls_are_told_apart_however_they_are_sent(
    called: list[tuple[str, str]],
    marks: Callable[[int], dict[str, Any]],
    cuts: list[int],
    named: str,
    in_one_event: bool,
) -> None:
    pieces = []
    for number, (name, arguments) in enumerate(called):
        ends = [0, *sorted(cuts), len(arguments)]
        parts = [arguments[begin:end] for begin, end in pairwise(ends)]
        parts = [part for part in parts if part]
        texts = [""] * named.startswith("alone") + parts + [""] * named.endswith("end")
        for place, text in enumerate(texts):
            marked = marks(number)
            if named == "alone, id once" and place and "index" in marked:
                marked.pop("id", None)
            has_name = not place or named.startswith("each")
            pieces.append(piece(text, **marked, **({"name": name} if has_name else {})))
    choice = StreamedChoice()
    for event in [calls(*pieces)] if in_one_event else map(calls, pieces):
        choice.add(event)
    choice.add(delta("tool_calls"))
    document: Any = choice.document()
    (found,) = document["choices"]
    made = [(each["function"]["name"], each["function"]["arguments"]) for each in found["message"]["tool_calls"]]
    assert (called, None) == (made, found.get("error"))


@pytest.mark.parametrize("second", ['{"city": "Oslo"}', '{"ci'])
def test_glued_arguments_are_an_error_and_those_that_the_model_spoils_are_not(second: str) -> None:
    glued = [calls(piece(RIGA[1], index=0, name="weather")), calls(piece(second, index=0))]
    fails(
        AdapterError, [streams(*glued, delta("tool_calls"), DONE)], "one call of weather", "stream=false", stream=True
    )
    spoilt = answer(calls(piece(RIGA[1] + "}", index=0, name="weather")), delta("tool_calls"), DONE)
    assert RIGA[1] + "}" == spoilt.tool_calls[0].arguments


def test_the_first_content_is_timed_apart_from_the_whole() -> None:
    outcome = ask([in_time([delta(content="4"), delta(content="2"), STOP, DONE], 0.05)], stream=True)
    assert outcome.completion is not None
    assert outcome.completion.ttft_ms is not None
    assert outcome.completion.latency_ms is not None
    # The role came at once and is no content; after the first content three pauses follow.
    assert 45 <= outcome.completion.ttft_ms <= outcome.completion.latency_ms - 100


def test_a_server_that_does_not_stream_is_answered_as_ever() -> None:
    outcome = ask([says("4\ndata: 5")], stream=True)
    assert outcome.completion is not None
    assert ("4\ndata: 5", None) == (outcome.completion.text, outcome.completion.ttft_ms)
    fails(AdapterError, [replies(200, b"{")], "invalid JSON", stream=True)
    fails(TransientError, [replies(200, b"")], "invalid JSON", stream=True)
    fails(TransientError, [replies(200, b"<html>")], "invalid JSON", stream=True)


def test_compressed_events_are_read_as_they_are() -> None:
    body = gzip.compress(sent(delta(content="4"), STOP, DONE))
    outcome = ask([replies(200, body, {"Content-Encoding": "gzip"})], stream=True)
    assert outcome.completion is not None
    assert "4" == outcome.completion.text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(sent(delta(content="4")), id="between events"),
        pytest.param(sent(delta(content="4")) + sent(delta(content="2"))[:-9], id="within an event"),
        pytest.param(b": wait\n\n", id="before the first"),
    ],
)
def test_a_stream_that_breaks_off_is_asked_again(body: bytes) -> None:
    fails(TransientError, [raw(head(200, OPEN) + body)], "ended too early", stream=True)
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    fails(TransientError, [raw(head(200, {"Transfer-Encoding": "chunked"}) + chunk)], "cut off", stream=True)


@pytest.mark.parametrize("end", [sent(DONE), sent(DONE)[:-2], sent(STOP), sent(STOP)[:-2], sent(STOP, USAGE)[:-9]])
def test_a_stream_is_whole_with_a_reason_or_a_mark_at_its_end(end: bytes) -> None:
    outcome = ask([raw(head(200, OPEN) + sent(delta(content="4")) + end)], stream=True)
    assert outcome.completion is not None, outcome.error
    assert "4" == outcome.completion.text


@pytest.mark.parametrize(
    ("event", "kind", "part"),
    [
        (sent({"error": {"message": "overloaded", "code": 503}}), TransientError, "error object: .*overloaded"),
        (sent({"error": {"type": "invalid_request_error"}}), AdapterError, "error object: .*invalid_request"),
        (b'event: error\ndata: {"code": 400, "message": "no"}\n\n', AdapterError, "error object: .*no"),
        (b'error: {"code": 500, "message": "no"}\n\n', TransientError, "error object: .*no"),
        (sent({"object": "error", "code": 400}), AdapterError, "error object"),
        (sent("nonsense"), AdapterError, "invalid JSON: nonsense"),
        (sent([1]), AdapterError, "expected a JSON object, got list"),
        (sent({"choices": [5]}), AdapterError, "expected a choice to be an object"),
        (sent({"choices": [{"delta": 5}]}), AdapterError, "a choice without a message"),
        (sent(delta(tool_calls=[{"index": 0, "function": "f"}])), AdapterError, "a choice without a message"),
        (sent(calls("f")), AdapterError, "a choice without a message"),  # type: ignore[arg-type]  # wrong on purpose
        (sent(delta("content_filter")), RequestRefused, "content filter"),
        (sent(delta("stop")), RequestRefused, "no text"),
        (sent({"choices": [{"error": {"code": 502}, "delta": {}}]}), TransientError, "error in the choice: .*502"),
        (b'data: {"choices": [], "choices": []}\n\n', AdapterError, "the reply has 'choices' twice"),
        (sent(DONE), AdapterError, "no choices"),
    ],
)
def test_an_event_that_is_none_of_an_answer_is_an_error(event: bytes, kind: type[AdapterError], part: str) -> None:
    before = b"" if kind is RequestRefused or part == "no choices" else sent(delta(content="4"))
    after = sent(STOP, DONE) if before else sent(DONE)
    outcome = fails(kind, [raw(head(200, OPEN) + before + event + after)], stream=True)
    assert re.search(part, str(outcome.error))


def test_what_comes_after_the_end_is_no_part_of_the_answer() -> None:
    after = sent(delta(content="2"), {"error": {"code": 500}}, "nonsense", USAGE)
    outcome = ask([raw(head(200, OPEN) + sent(delta(content="4"), STOP, DONE) + after)], stream=True)
    assert outcome.completion is not None, outcome.error
    assert ("4", None) == (outcome.completion.text, outcome.completion.prompt_tokens)


def test_an_error_counts_although_the_connection_breaks_after_it() -> None:
    body = sent(delta(content="4"), {"error": {"code": 400}})
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    fails(AdapterError, [raw(head(200, {"Transfer-Encoding": "chunked"}) + chunk)], "error object", stream=True)


def test_a_stream_is_read_up_to_the_limit() -> None:
    step = streams(*[delta(content="4")] * 99, STOP, DONE)
    fails(AdapterError, [step], "more than 1000 bytes", stream=True, max_response_bytes=1000)


@pytest.mark.parametrize("size", [1, 4, 99])
def test_the_key_is_whole_where_events_cut_it_to_pieces_and_masked_in_errors(size: int) -> None:
    text = f"Your header was Bearer {KEY}."
    pieces = [delta(content=text[start : start + size]) for start in range(0, len(text), size)]
    assert text == answer(*pieces, STOP, DONE).text
    outcome = fails(AdapterError, [streams({"error": {"code": 400, "message": text}})], "***", stream=True)
    assert_no_key(outcome.text)


@given(st.integers(1, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_the_chunks_that_events_come_in_make_no_difference(size: int, newline: bytes) -> None:
    body = b"\xef\xbb\xbf: hello\n\n" + sent(delta(content="4"), delta(content="é"), STOP, USAGE, DONE)
    body = body.replace(b"\n", newline)
    events = EventStream(StreamedChoice(), clock=lambda: 5.0)
    for start in range(0, len(body), size):
        events.feed(body[start : start + size])
    assert events.end()
    document = json.loads(events.document() or b"")
    assert ("4é", 5.0) == (document["choices"][0]["message"]["content"], events.first)


@given(st.lists(st.sampled_from([b"data: ", b"event: error\n", b"{", b"}", b'"error":', b"[1]", b"\n", b"\n\n", b":"])))
def test_no_bytes_upset_the_reader(parts: list[bytes]) -> None:
    events = EventStream(StreamedChoice())
    events.feed(b"".join(parts))
    assert events.end() in (True, False)
    assert events.document() != b""


def test_a_run_is_held_to_its_time_until_the_first_token(project: Project) -> None:
    records = [{"id": f"e{n}", "prompt": f"q{n}", "targets": ["4"], "metric": "exact_match"} for n in range(20)]
    project.task("tasks/sums.jsonl", *records)
    with serving([streams(delta(content="4"), STOP, USAGE, DONE)]) as server:
        options = [f"--lm-adapter-arg=base_url={server.base_url}", "--lm-adapter-arg=stream=true"]
        ran = project.run_pytest("--lm-adapter=openai:m", *options, "--lm-max=overall.ttft_p95_ms=0.001")
    assert 1 == ran.ret
    ran.stdout.fnmatch_lines(["gate examples: LIMIT", "  overall.ttft_p95_ms: * is over its limit 0.001"])
    assert project.board()["spent"]["ttft_p95_ms"] <= project.board()["spent"]["p95_ms"]


STREAMS = """
import json
from urllib.request import Request, urlopen
from pytest_lmeval import eval_task

@eval_task("app", data=[{"id": "a"}])
def test_app(row, lm):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    asked = {"model": "m", "stream": True, "tools": tools, "messages": [{"role": "user", "content": "Where?"}]}
    headers = {"Content-Type": "application/json"}
    request = Request(f"{lm.base_url}/chat/completions", json.dumps(asked).encode(), headers)
    calls = {}
    with urlopen(request) as reply:
        for line in reply:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    for piece in choice["delta"].get("tool_calls") or ():
                        calls.setdefault(piece["index"], []).append(piece["function"].get("arguments") or "")
    lm.score("both", ["".join(each) for each in calls.values()] == ['{"city": "Riga"}', '{"city": "Oslo"}'])
"""


@pytest.mark.parametrize(("names", "code", "statuses"), [(2, 0, "passed"), (1, 3, "error")])
def test_a_run_and_an_application_get_the_calls_or_an_error(
    project: Project, names: int, code: int, statuses: str
) -> None:
    expected = [{"name": "weather", "arguments": {"city": city}} for city in ("Riga", "Oslo")]
    tool = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    record: dict[str, Any] = {"id": "a", "prompt": "Where?", "metric": "tool_calls"}
    record["extras"] = {"tools": [tool], "calls": expected}
    project.task("tasks/calls.jsonl", record)
    project.write("test_app.py", STREAMS)
    events = [
        calls(piece(text, index=0, **({"name": "weather"} if place < names else {})))
        for place, (_, text) in enumerate([RIGA, OSLO])
    ]
    with serving([streams(*events, delta("tool_calls"), USAGE, DONE)]) as server:
        options = [f"--lm-adapter-arg=base_url={server.base_url}", "--lm-adapter-arg=stream=true"]
        ran = project.run_pytest("--lm-adapter=openai:m", *options, "--lm-include-per-example")
    assert (code, {statuses}) == (ran.ret, {*project.statuses().values()}), ran.stdout.str()
