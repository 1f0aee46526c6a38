"""Shapes of requests, usage and errors that clients of servers other than OpenAI's plain ones send and get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.functions.clients import chat_request, responses_request
from tests.adapters.openai.scripted_server import Exchange, chat, json_reply, serving
from tests.conftest import Project
from tests.needs import installed
from tests.tables import each_row


async def server(exchange: Exchange) -> None:
    seen = exchange.seen
    error = {"message": "too long", "code": 7}
    errors: dict[str, Any] = {"in a list": [{"error": error}], "of a list": {"error": [error]}}
    if seen.target.endswith("/embeddings"):
        await json_reply({"object": "list", "data": [{"index": 0, "embedding": [0.5]}], "usage": {}})(exchange)
    elif (said := seen.json["messages"][0]["content"]) in errors:
        await json_reply(errors[said], 400)(exchange)
    else:
        await json_reply(chat("a"))(exchange)


def test_an_application_is_answered_as_by_the_server_itself(project: Project) -> None:
    installed("openai")
    project.copy("eval_shapes", "test_shapes.py")
    with serving([server]) as served:
        given = f"--lm-adapter-arg=base_url={served.base_url}"
        result = project.run("test_shapes.py", "--lm-adapter=openai:m", given)
    assert 0 == result.ret, result.stdout.str()
    first, allowed, any_, *embeddings = served.requests[:5]
    assert {"role": "assistant", "content": None, "refusal": "I cannot."} == first.json["messages"][1]
    tools = allowed.json["tools"]
    assert {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}} == allowed.json["tool_choice"]
    assert "any" == any_.json["tool_choice"]
    assert ["/v1/embeddings", "/v1/embeddings"] == [seen.target.partition("?")[0] for seen in embeddings]
    result.stdout.fnmatch_lines(["*dropped between clients and m: messages[[][]].content[[][]].cache_control (1)*"])


FUNCTION = {"name": "look", "parameters": {}}
CUSTOM = {"type": "custom", "custom": {"name": "sql"}}
REFUSED = (
    (chat_request.read_request, {"messages": [{"role": "user", "content": "q"}], "tools": [CUSTOM]}),
    (
        lambda body: responses_request.read_request(body, {}),
        {"input": "q", "tools": [{"type": "custom", "name": "sql"}]},
    ),
)


@each_row(("read", "body"), REFUSED)
def test_tools_of_free_text_are_refused_by_name(read: Any, body: Any) -> None:
    with pytest.raises(ValueError, match=r"^tools\[0\].type: expected a function of the application: custom tools"):
        read(json.dumps(body).encode())


def test_a_choice_among_tools_has_the_form_of_chat_completions() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]}
    body = {"input": "q", "tools": [{"type": "function", **FUNCTION}], "tool_choice": choice}
    asked = responses_request.read_request(json.dumps(body).encode(), {})
    named = {"mode": "required", "tools": [{"type": "function", "function": {"name": "look"}}]}
    wanted = {"tool_choice": {"type": "allowed_tools", "allowed_tools": named}}
    assert (wanted, "") == (asked.fields["options"], asked.fields["tool_choice"])
