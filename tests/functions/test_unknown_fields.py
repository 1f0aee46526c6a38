"""Fields that the package does not know go back to the server, as servers of models that think before calls demand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval import extra
from pytest_lmeval.functions import steps
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.chat_reply import document, events_of
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.types import Completion, Generate, Message, ToolCall
from tests.adapters.anthropic.messages_server import call, message, speaks, text, thought
from tests.adapters.openai.scripted_server import (
    Exchange,
    ScriptedServer,
    Step,
    chat,
    json_reply,
    replies,
    serving,
    status,
)
from tests.conftest import Project
from tests.needs import installed

SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
THOUGHTS = "It asks for a look."
LOOK = {"name": "look", "parameters": {"type": "object"}}
TURNS: dict[str, Any] = {
    "id": "open",
    "turns": [{"user": said, "targets": ["It is open."]} for said in ("Is it open?", "Really?")],
    "extras": {"tools": [LOOK], "responses": {"look": "open"}},
}
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 3, "accepted_prediction_tokens": 2},
}


def gemini(turn: Mapping[str, Any]) -> Step | None:
    """Refuse a call without its signature, in a list, as Gemini does."""
    if [each.get("extra_content") for each in turn["tool_calls"]] == [SIGNED]:
        return None
    said = "Function call is missing a thought_signature in functionCall parts."
    return json_reply([{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}], 400)


def deepseek(turn: Mapping[str, Any]) -> Step | None:
    """Refuse a call without the thoughts before it, as DeepSeek does."""
    if turn.get("reasoning_content") == THOUGHTS:
        return None
    said = "Missing `reasoning_content` field in the assistant message at message index 1."
    return json_reply({"error": {"message": said, "type": "invalid_request_error"}}, 400)


REPLIES: Mapping[str, Any] = {
    "gemini-3": (gemini, {}, {"extra_content": SIGNED}),
    "deepseek-v4": (deepseek, {"reasoning_content": THOUGHTS}, {}),
}


async def model(exchange: Exchange) -> None:
    """Ask for a look, then say what was seen; refuse a conversation that lacks what came with the call."""
    body = exchange.seen.json
    refuses, of_message, of_call = REPLIES[body["model"]]
    called = [turn for turn in body["messages"] if turn.get("tool_calls")]
    wrong = next((found for turn in called if (found := refuses(turn))), None)
    plain = [turn for turn in body["messages"] if turn["role"] == "assistant" and not turn.get("tool_calls")]
    assert not any("reasoning_content" in turn for turn in plain)
    reply = {"role": "assistant", "content": "It is open.", **of_message}
    if body["messages"][-1]["role"] == "user" and not called:
        function = {"name": "look", "arguments": "{}"}
        reply |= {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function, **of_call}]}
    await (wrong or _answer(reply, streams=body.get("stream", False)))(exchange)


def _answer(reply: dict[str, Any], *, streams: bool) -> Step:
    reason = "tool_calls" if "tool_calls" in reply else "stop"
    head = {"id": "c", "created": 1, "model": "m-2026"}
    if not streams:
        return json_reply({**head, "choices": [{"message": reply, "finish_reason": reason}], "usage": USAGE})
    calls = [{"index": number, **each} for number, each in enumerate(reply.get("tool_calls", ()))]
    deltas = [reply | {"tool_calls": calls}, {}]
    events: list[Any] = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    events += [{"choices": [{"delta": {}, "finish_reason": reason}]}, {"choices": [], "usage": USAGE}]
    sent = "".join(f"data: {json.dumps({**head, **event})}\n\n" for event in events)
    return replies(200, f"{sent}data: [DONE]\n\n".encode(), {"Content-Type": "text/event-stream"})


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving([model]) as server:
        yield server


@pytest.fixture
def carried(project: Project, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Project:
    # A short key, which the signature happens to contain.
    monkeypatch.setenv("OPENAI_API_KEY", "bmVk")
    project.copy("eval_carried", "test_carried.py")
    project.task("tasks/turns.jsonl", TURNS)
    project.usual = (f"--lm-adapter-arg=base_url={server.base_url}", "--lm-include-per-example")
    return project


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("stream", ["false", pytest.param("true", marks=pytest.mark.again)])
def test_what_a_server_demands_back_goes_back_live_replayed_and_cached(
    carried: Project, server: ScriptedServer, name: str, stream: str
) -> None:
    adapter = (f"--lm-adapter=openai:{name}", f"--lm-adapter-arg=stream={stream}", "--lm-cache=cache")
    live = carried.run("test_carried.py", "tasks", *adapter)
    assert 0 == live.ret, live.stdout.str()
    assert {"passed"} == {*carried.statuses().values()}
    asked = len(server.requests)
    assert 14 == asked
    cached = carried.run("test_carried.py", "tasks", *adapter, "--lm-report-dir=cached")
    replay = ("--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=again")
    carried.usual = ()
    replayed = carried.run("test_carried.py", "tasks", *replay)
    assert (0, 0, asked) == (cached.ret, replayed.ret, len(server.requests)), replayed.stdout.str()
    assert carried.board()["digest"] == carried.board("cached")["digest"] == carried.board("again")["digest"]
    page = (carried.path / "reports/report.html").read_text("utf-8")
    assert "c2lnbmVk" not in page + live.stdout.str()
    assert "dropped" not in live.stdout.str()


@pytest.mark.parametrize("name", REPLIES)
def test_a_run_that_broke_off_behind_a_call_is_resumed_with_what_came_with_the_call(
    carried: Project, server: ScriptedServer, name: str
) -> None:
    async def breaks(exchange: Exchange) -> None:
        is_first = exchange.seen.json["messages"][-1]["role"] == "user"
        await (model if is_first else status(500))(exchange)

    server.script = [breaks]
    adapter = (f"--lm-adapter=openai:{name}", "--lm-retries=0")
    assert 3 == carried.run("test_carried.py", "tasks", *adapter).ret
    asked = len(server.requests)
    server.script = [model]
    resumed = carried.run("test_carried.py", "tasks", *adapter, "--lm-resume")
    assert 0 == resumed.ret, resumed.stdout.str()
    # The question of the second turn comes last, and lm.ask sends the results twice.
    assert {"tool": 7, "user": 1} == Counter(seen.json["messages"][-1]["role"] for seen in server.requests[asked:])


@pytest.mark.parametrize(("back", "sent"), [("never", [0, 0]), ("calls", [1, 0]), ("always", [1, 1])])
def test_the_option_decides_which_thoughts_go_back_and_an_error_names_it(
    carried: Project, server: ScriptedServer, back: str, sent: list[int]
) -> None:
    async def answers(exchange: Exchange) -> None:
        turns = [turn for turn in exchange.seen.json["messages"] if turn["role"] == "assistant"]
        reply: dict[str, Any] = chat("It is open.", reasoning=THOUGHTS, signature="s")["choices"][0]["message"]
        if not turns:
            reply["tool_calls"] = [{"id": "c1", "function": {"name": "look", "arguments": "{}"}, "seal": "z"}]
        if len(turns) == 2:
            assert [("reasoning" in turn) for turn in turns] == [*map(bool, sent)]
            assert ("z", "s") == (turns[0]["tool_calls"][0]["seal"], turns[0]["signature"])
            assert ("signature" in turns[1]) == (back == "always")
            await status(400, '{"error": [{"message": "messages.1: unknown field `reasoning`", "code": "odd"}]}')(
                exchange
            )
        else:
            await _answer(reply, streams=False)(exchange)

    server.script = [answers]
    result = carried.run("tasks", "--lm-adapter=openai:m", f"--lm-adapter-arg=thoughts_back={back}")
    assert 3 == result.ret
    (record,) = carried.examples().values()
    assert "unknown field `reasoning`" in record["error"]
    assert "for turns and lm.ask, thoughts_back=calls|always|never decides which thoughts go back" in record["error"]


def thinking(body: dict[str, Any]) -> dict[str, Any]:
    """Think and ask for a look, then say what was seen; thoughts behind results must be those that were signed."""
    usage = {"cache_read_input_tokens": 5}
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    if not turns:
        blocks = [thought(THOUGHTS), {"type": "redacted_thinking", "data": "cmVk"}, call("t1", "look")]
        return message(*blocks, stop_reason="tool_use", usage=usage)
    assert [thought(THOUGHTS), {"type": "redacted_thinking", "data": "cmVk"}] == turns[0]["content"][:2]
    assert "thinking" in body
    return message(thought("so"), text("It is open."), usage=usage)


@pytest.mark.parametrize("stream", ["false", "true"])
def test_thoughts_that_are_signed_go_back_with_their_signature(
    project: Project, monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    installed("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-adapter-0123456789")
    project.copy("eval_carried", "test_signed.py")
    project.task("tasks/turns.jsonl", TURNS | {"turns": TURNS["turns"][:1]})
    project.usual = ("--lm-include-per-example",)
    with serving([speaks(thinking)]) as server:
        given = (f"base_url={server.base_url}", f"stream={stream}")
        options = [f"--lm-adapter-arg={each}" for each in given]
        live = project.run("test_signed.py", "--lm-adapter=anthropic:claude", *options)
        assert 0 == live.ret, live.stdout.str()
        options += ["--lm-adapter-arg=thinking=1024", "--lm-report-dir=turns"]
        assert 0 == project.run("tasks", "--lm-adapter=anthropic:claude", *options).ret
    assert "dropped" not in live.stdout.str()
    replayed = project.run("test_signed.py", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=again")
    assert 0 == replayed.ret, replayed.stdout.str()


def test_a_server_that_echoes_the_key_in_an_unknown_field_does_not_spread_it() -> None:
    key = "sk-adapter-0123456789"
    step = steps.Step("request", "bmVk", extra=extra.packed({"signature": "c2lnbmVk", "echo": key}))
    assert (
        '{"message":{"echo":"***","signature":"c2lnbmVk"}}'
        == Scrubber([key, "bmVk"]).scrub_all(step.to_json())["extra"]
    )


def test_a_request_without_unknown_fields_has_the_hash_that_it_had() -> None:
    calls = (ToolCall("c", "look", "{}"),)
    question, answer = Message("user", "q"), Message("assistant", "", calls)
    assert "c2fbe762" == request_hash([Generate((question, answer, Message("tool", "r", (), "c")))])[:8]
    signed = (extra.packed({"signature": "s"}, [{"seal": "z"}]), extra.packed({"signature": "t"}), "")
    hashes = {request_hash([Generate((question, replace(answer, extra=given)))]) for given in signed}
    assert 3 == len(hashes)


def test_an_answer_goes_back_with_its_own_fields_and_with_no_others() -> None:
    fields: dict[str, object] = {"reasoning": None, "signature": "s"}
    answer = Completion(
        "a", thoughts="t", extra=extra.of_answer(fields, [{}, {"seal": "z"}], {"n_details": {}}, "calls")
    )
    assert {"message": {"reasoning": "t", "signature": "s"}, "calls": [{}, {"seal": "z"}]} == json.loads(
        answer.message.extra
    )
    without = Completion("a", thoughts="t", extra=extra.of_answer(fields, [], {}, "calls"))
    assert Message("assistant", "a") == without.message
    assert {"reasoning": "t", "signature": "s"} == extra.Extra.of(extra.for_client(without.extra, "t")).message


def test_a_client_gets_thoughts_under_the_name_that_the_server_has_for_them() -> None:
    kept = extra.of_answer({"reasoning": None, "annotations": [1]}, [], {}, "calls")
    asked = ClientRequest((), {}, "m", streams=False)
    for given, name in ((kept, "reasoning"), ("", "reasoning_content")):
        whole = document(Completion("a", thoughts="t", extra=given), asked)
        found = {"role": "assistant", "content": "a", "refusal": None, name: "t"} | (
            {"annotations": [1]} if given else {}
        )
        assert found == whole["choices"][0]["message"]
        deltas = [event["choices"][0]["delta"] for event in events_of(whole, asked)]
        assert {name: "t"} in deltas
        assert bool(given) == ({"annotations": [1]} in deltas)


@pytest.mark.parametrize("given", [5, "5", "{", {"message": 5}, {"calls": [5]}, {"other": {}}, {"calls": 5}])
def test_what_an_adapter_carries_is_checked(given: object) -> None:
    with pytest.raises(ValueError, match=r"^extra .*; expected an object with message, calls, kept or usage, or its J"):
        extra.checked(given)
    assert '{"message":{"a":1}}' == extra.checked({"message": {"a": 1}}) == extra.checked('{"message": {"a": 1}}')


def test_pieces_of_a_stream_are_put_together() -> None:
    held: dict[str, object] = {}
    for piece in ({"a": "x", "b": [1], "c": {"d": "y"}}, {"a": "x", "b": [2], "c": {"d": "z", "e": True}}, {"f": 1}):
        extra.accumulate(held, piece)
    assert {"a": "x", "b": [1, 2], "c": {"d": "yz", "e": True}, "f": 1} == held
