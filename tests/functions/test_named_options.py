"""The options of clients' requests that a run keeps and compares, in each interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_lmeval.functions.clients import chat_request, messages_request, responses_request
from pytest_lmeval.functions.clients.body import ClientRequest
from tests.tables import each_row

SAID = [{"role": "user", "content": "x"}]
SCHEMA = {"name": "n", "schema": {"type": "string"}}
READ: dict[str, Callable[[bytes], ClientRequest]] = {
    "chat": chat_request.read_request,
    "responses": lambda body: responses_request.read_request(body, {}),
    "messages": messages_request.read_request,
}
BODIES: Any = (
    ("chat", {}, {}),
    ("chat", {"temperature": 0, "top_p": 0.5, "seed": 7}, {"temperature": 0, "top_p": 0.5, "seed": 7}),
    ("chat", {"max_completion_tokens": 5}, {"max_tokens": 5}),
    ("chat", {"max_tokens": 5, "temperature": None}, {"max_tokens": 5}),
    ("chat", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
    ("chat", {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
    ("chat", {"reasoning_effort": ["x" * 99]}, {"reasoning_effort": "['" + 58 * "x"}),
    ("chat", {"response_format": {"type": "text"}}, {}),
    ("chat", {"response_format": {"type": "json_object"}}, {"schema": "json_object"}),
    ("chat", {"response_format": {"type": "json_schema", "json_schema": SCHEMA}}, {"schema": "HASH"}),
    ("chat", {"user": "me", "logit_bias": {"1": 2}}, {}),
    ("responses", {"max_output_tokens": 5, "temperature": 1}, {"max_tokens": 5, "temperature": 1}),
    ("responses", {"reasoning": {"effort": "high"}}, {"reasoning_effort": "high"}),
    ("responses", {"text": {"format": {"type": "json_schema", **SCHEMA}}}, {"schema": "HASH"}),
    ("messages", {"max_tokens": 5}, {"max_tokens": 5}),
    (
        "messages",
        {"max_tokens": 5, "thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"}},
        {"max_tokens": 5, "thinking": 1024, "reasoning_effort": "low"},
    ),
    ("messages", {"max_tokens": 5, "thinking": {"type": "adaptive"}}, {"max_tokens": 5, "thinking": "adaptive"}),
)


@each_row(("interface", "more", "named"), BODIES)
def test_a_request_names_these_options(interface: str, more: Any, named: Any) -> None:
    prompt = {"input": "x"} if interface == "responses" else {"messages": SAID}
    found = READ[interface](json.dumps({**prompt, **more}).encode()).named
    if named.get("schema") == "HASH":
        named = named | {"schema": "be9ce470b6d2"}
    assert named == found
