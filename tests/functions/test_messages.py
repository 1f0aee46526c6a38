"""Requests and replies of Anthropic's Messages interface at the endpoint: what reaches a model, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.adapters.anthropic.stream import StreamedMessage
from pytest_lmeval.extra import packed
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.messages_reply import document, events_of
from pytest_lmeval.functions.clients.messages_request import read_request
from pytest_lmeval.types import Completion, Message, ToolCall
from tests.adapters.anthropic.messages_server import call, message, speaks, text, thought
from tests.adapters.openai.scripted_server import serving
from tests.clients_server import serves
from tests.conftest import Project
from tests.tables import each_row

LOOK = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "tea"}]}
TALK = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [thought("hm"), text("I look"), CALL]},
    {"role": "user", "content": [RESULT, text("and?")]},
]

SIGNED = packed({"thinking_blocks": [thought("hm")]})


def read(beta: str = "", **fields: Any) -> ClientRequest:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]} | fields
    return read_request(json.dumps(body).encode(), beta)


def test_blocks_are_messages_and_options_those_of_the_interface() -> None:
    asked = read(
        messages=TALK,
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        tools=[LOOK | {"type": "custom", "strict": True}],
        tool_choice={"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        stop_sequences=["end", ""],
        top_k=5,
        stream=True,
        beta="new-thing",
    )
    assert [
        Message("system", "Be brief."),
        Message("user", "q"),
        Message("assistant", "I look", (ToolCall("toolu_1", "look", '{"at": 1}'),), extra=SIGNED),
        Message("tool", "tea", (), "toolu_1"),
        Message("user", "and?"),
    ] == list(asked.messages)
    tool = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
    wanted = {"stop": ("end",), "max_tokens": 9, "options": {"top_k": 5}, "tools": (tool,), "tool_choice": "look"}
    assert wanted == asked.fields
    assert ("anthropic-beta: new-thing", "cache_control", "tool_choice.disable_parallel_tool_use") == asked.dropped
    assert asked.streams


def test_thoughts_are_not_asked_for_where_the_server_would_miss_those_before() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert {"thinking": thinking} == read(thinking=thinking).fields["options"]
    for thoughts, kept, dropped in (
        ([thought("hm")], thinking, ()),
        ([thought("hm") | {"signature": ""}], None, ("thinking",)),
    ):
        turn = {"role": "assistant", "content": [*thoughts, CALL]}
        answered = [TALK[0], turn, {"role": "user", "content": [RESULT | {"is_error": True}]}]
        asked = read(messages=answered, thinking=thinking)
        assert (kept, (*dropped, "tool_result.is_error")) == (asked.fields["options"].get("thinking"), asked.dropped)


def _said(role: str, *blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


REFUSED: Any = (
    ({"max_tokens": None}, "max_tokens: the field 'max_tokens' is required here"),
    ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role: 'system' is not one of user, assistant"),
    (_said("user", {"type": "video"}), "messages[0].content[0].type: 'video' is not one of"),
    (_said("user", RESULT | {"content": [{"type": "video"}]}), "messages[0].content[0].content: expected text content"),
    (_said("assistant", {"type": "server_tool_use"}), "messages[0].content[0].type: 'server_tool_use' is not one of"),
    (_said("assistant", CALL | {"input": "x"}), "messages[0].content[0].input: expected a mapping, got a string 'x'"),
    ({"system": 5}, "system: expected a text or a list, got 5"),
    ({"system": [{"type": "image"}]}, "system[0].type: 'image' is not one of text"),
    (
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        "tools[0].type: expected a function of the a",
    ),
    ({"tools": [LOOK | {"input_schema": 5}]}, "tools[0].input_schema: expected a mapping, got a number 5"),
    (
        {"tool_choice": {"type": "tool", "name": "see"}},
        "tool_choice: expected auto, none, required or one of the tools",
    ),
    ({"mcp_servers": []}, "mcp_servers: expected nothing: tools of other servers are not supported"),
    ({"stop_sequences": "end"}, "stop_sequences: expected a list, got a string 'end'"),
)


@each_row(("fields", "said"), REFUSED)
def test_what_cannot_be_asked_is_refused_by_name(fields: Any, said: str) -> None:
    with pytest.raises(ValueError) as raised:  # the message is compared below
        read(**fields)
    assert str(raised.value).startswith(said)


ANSWERS = (
    (Completion("yes", finish_reason="stop", prompt_tokens=3, completion_tokens=2), "end_turn"),
    (Completion(""), "end_turn"),
    (Completion("ye", finish_reason="length"), "max_tokens"),
    (Completion("no", finish_reason="refusal"), "refusal"),
    (
        Completion("", thoughts="hm", tool_calls=(ToolCall("c", "look", '{"at": 1}'), ToolCall("d", "see", ""))),
        "tool_use",
    ),
)


@each_row(("answer", "reason"), ANSWERS)
def test_the_events_of_a_stream_are_the_message_in_one_piece(answer: Completion, reason: str) -> None:
    asked = read()
    whole = document(answer, asked)
    assert reason == whole["stop_reason"]
    came = StreamedMessage()
    for event in events_of(whole, asked):
        came.add(event)
    found: Any = came.document()
    assert came.has_ended
    for block in found["content"]:
        block["input"] = json.loads(block["input"]) if isinstance(block.get("input"), str) else block.get("input")
    assert [{"input": None, **block} for block in whole["content"]] == found["content"]
    assert {name: whole[name] for name in ("usage", "stop_reason", "model")} == {
        name: found[name] for name in ("usage", "stop_reason", "model")
    }


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    last = body["messages"][-1]["content"]
    if last[0]["type"] == "tool_result":
        return message(text(f"it is {last[0]['content']}"))
    return message(thought("hm"), call("toolu_7", "look", at=last[0]["text"]), stop_reason="tool_use")


def test_an_application_of_the_interface_is_answered_in_front_of_its_adapter_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-adapter-0123456789")
    project.copy("eval_messages")
    with serving([speaks(_answer)]) as server:
        given = f"--lm-adapter-arg=base_url={server.base_url}"
        result = project.run("test_agent.py", "--lm-adapter=anthropic:claude", given)
    assert 3 == result.ret
    examples = project.ledger()
    assert ["passed", "passed", "error", "error"] == [
        examples[key]["status"] for key in ("agent:a", "agent:b", "refused:there", "refused:here")
    ], result.stdout.str()
    result.stdout.fnmatch_lines(
        ["*clients asked for claude-asked (7); claude* was asked instead*", "*dropped*: cache_control (6)*"]
    )
    result = project.run(
        "test_agent.py::test_agent", "--lm-adapter=replay:reports/ledger.jsonl", "--lm-report-dir=replayed"
    )
    assert 0 == result.ret, result.stdout.str()
    result = project.run("test_agent.py::test_agent", "--lm-report-dir=other")
    result.stdout.fnmatch_lines(["*Anthropic's interface needs the adapter anthropic:*"])


def test_what_is_forwarded_goes_below_the_version_of_the_interface(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-adapter-0123456789")
    project.write(
        "test_models.py",
        """
import urllib.request
from pytest_lmeval import eval_task

@eval_task("models")
def test_models(lm):
    with urllib.request.urlopen(lm.base_url + "/v1/models") as reply:
        lm.score("right", b'"mock"' in reply.read())
""",
    )
    with serving([serves()]) as server:
        given = f"--lm-adapter-arg=base_url={server.base_url.removesuffix('/v1')}"
        result = project.run("test_models.py", "--lm-adapter=anthropic:claude", given)
    assert 0 == result.ret, result.stdout.str()
    (seen,) = server.requests
    assert ("/v1/models", "sk-adapter-0123456789") == (seen.target, seen.headers["x-api-key"])
