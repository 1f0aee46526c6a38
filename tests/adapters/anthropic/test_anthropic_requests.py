"""What is asked: every request is one that the interface takes, whatever the conversation is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.types import Generate, Message, ToolCall
from tests.adapters.openai.scripted_server import serving

from .asking import ask, refused
from .messages_server import message, speaks, text

LOOK = {"name": "look", "description": "looks", "parameters": {"type": "object", "properties": {"at": {}}}}
FINE = speaks(message(text("4")))


def sent(request: Generate | str, **options: Any) -> dict[str, Any]:
    """Return the body that the server was sent, and took."""
    outcome, bodies = ask([FINE], request, **options)
    assert outcome.completion is not None, outcome.error
    body: dict[str, Any] = bodies[0]
    return body


def said(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": each} for each in texts]}


def test_a_prompt_is_asked_with_the_limit_that_the_interface_wants() -> None:
    assert {"model": "m", "max_tokens": 4096, "messages": [said("user", "hi é\ud800")]} == sent("hi é\ud800")


def test_the_key_and_the_version_are_headers() -> None:
    with serving([FINE]) as server:
        assert ask([], base_url=server.base_url)[0].completion is not None
    headers = server.requests[0].headers
    assert ("2023-06-01", False) == (headers["anthropic-version"], "authorization" in headers)
    assert headers["x-api-key"].startswith("sk-")


def test_no_key_is_no_header() -> None:
    with serving([FINE]) as server:
        assert "x-api-key header is required" in str(ask([], base_url=server.base_url, api_key_env="")[0].error)
    assert "x-api-key" not in server.requests[0].headers


def test_what_was_asked_for_is_sent() -> None:
    body = sent(
        Generate("hi", stop=("A",), max_tokens=5),
        temperature=0.5,
        top_p=0.9,
        top_k=3,
        stop=["B", "A"],
        system="short",
        stream=True,
        extra_body={"service_tier": "auto"},
    )
    assert {
        "model": "m",
        "max_tokens": 5,
        "messages": [said("user", "hi")],
        "system": "short",
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "stop_sequences": ["A", "B"],
        "service_tier": "auto",
    } == body


def test_options_of_one_request_go_first() -> None:
    options = {"temperature": 1, "model": "other", "service_tier": "auto"}
    body = sent(Generate("hi", options=options), temperature=0, extra_body={"service_tier": "standard_only"})
    assert options == {name: body[name] for name in options}


@pytest.mark.parametrize(
    ("turns", "system", "messages"),
    [
        pytest.param(
            [Message("system", "be"), Message("developer", "short"), Message("user", "hi")],
            "be\n\nshort",
            [said("user", "hi")],
            id="system texts are apart, and go before the option's",
        ),
        pytest.param(
            [Message("user", "a"), Message("user", "b"), Message("assistant", "c"), Message("user", "d")],
            "long",
            [said("user", "a", "b"), said("assistant", "c"), said("user", "d")],
            id="neighbours of one role are one turn",
        ),
        pytest.param(
            [Message("user", "a"), Message("assistant", "\n"), Message("user", "b")],
            "long",
            [said("user", "a", "b")],
            id="an answer of nothing is no turn",
        ),
    ],
)
def test_a_conversation_alternates(turns: list[Message], system: str, messages: list[Any]) -> None:
    body = sent(Generate(tuple(turns)), system="long")
    assert (system, messages) == (body["system"], body["messages"])


def test_a_system_message_in_the_middle_is_refused_before_it_is_asked() -> None:
    turns = (Message("user", "a"), Message("system", "b"), Message("user", "c"))
    outcome, bodies = ask([FINE], Generate(turns))
    assert isinstance(outcome.error, RequestRefused)
    assert "a system message after a message of another role" in str(outcome.error)
    assert [] == bodies


def test_an_empty_prompt_is_for_the_server_to_refuse() -> None:
    assert "text content blocks must contain non-whitespace text" in str(refused(FINE, ""))


CALLED = Generate(
    (
        Message("user", "where?"),
        Message("assistant", "hm", (ToolCall("t1", "look", '{"at": 1}'), ToolCall("t2", "look", "{at"))),
        Message("tool", "here", tool_call_id="t1"),
        Message("tool", "", tool_call_id="t2"),
        Message("user", "sure?"),
    ),
    tools=(LOOK,),
)


def test_calls_and_results_are_blocks() -> None:
    _, assistant, user = sent(CALLED)["messages"]
    assert [
        {"type": "text", "text": "hm"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "t2", "name": "look", "input": {"INVALID_JSON": "{at"}},
    ] == assistant["content"]
    assert [
        {"type": "tool_result", "tool_use_id": "t1", "content": "here"},
        {"type": "tool_result", "tool_use_id": "t2", "content": ""},
        {"type": "text", "text": "sure?"},
    ] == user["content"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("", None),
        ("auto", None),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("look", {"type": "tool", "name": "look"}),
    ],
)
def test_tools_are_described(choice: str, expected: Any) -> None:
    bare = {"name": "stop", "strict": True}
    body = sent(Generate("hi", tools=(LOOK, bare), tool_choice=choice))
    assert expected == body.get("tool_choice")
    assert [
        {"name": "look", "description": "looks", "input_schema": LOOK["parameters"]},
        {"name": "stop", "strict": True, "input_schema": {"type": "object"}},
    ] == body["tools"]


def test_the_budget_of_thoughts_is_besides_the_limit_of_the_answer() -> None:
    body = sent(Generate("hi", max_tokens=10), thinking=1024)
    assert (1034, {"type": "enabled", "budget_tokens": 1024}) == (body["max_tokens"], body["thinking"])
    assert {"type": "adaptive"} == sent("hi", thinking="adaptive")["thinking"]


@pytest.mark.parametrize("last", [-1, None], ids=["results", "results and a question"])
def test_thoughts_are_not_asked_for_behind_results_as_those_before_are_never_sent_back(last: int | None) -> None:
    behind = replace(CALLED, prompt=CALLED.prompt[:last])
    assert (4096, None) == ((body := sent(behind, thinking=2048))["max_tokens"], body.get("thinking"))
    assert {"type": "adaptive"} == sent(behind, thinking="adaptive")["thinking"]


def test_thoughts_are_asked_for_again_once_the_model_has_answered() -> None:
    turns = (*CALLED.prompt, Message("assistant", "yes"), Message("user", "why?"))
    assert 2048 == sent(replace(CALLED, prompt=turns), thinking=2048)["thinking"]["budget_tokens"]


def test_a_base_url_may_end_with_the_version() -> None:
    with serving([FINE]) as server:
        for base_url in (server.base_url, server.base_url.removesuffix("/v1"), f"{server.base_url}/"):
            assert ask([], base_url=base_url)[0].completion is not None
        assert ["/v1/messages"] * 3 == [seen.target for seen in server.requests]
