"""What goes over the wire: the endpoint, the body, the headers and the connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.adapters.openai.options import read_options
from pytest_lmeval.adapters.openai.request import request_fields
from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.loading import make_adapter
from pytest_lmeval.types import BestEffort, Completion, Generate, Message, ToolCall
from tests.tables import each_row

from .asking import KEY
from .scripted_server import ScriptedServer, Seen, Step, chat, json_reply, replies, says, serving, slow, status

TALK = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "2 + 2 ="))


def fields(request: Generate, **options: Any) -> dict[str, Any]:
    return request_fields("m", read_options(options), request)


def exchange(step: Step, request: Generate, **options: Any) -> tuple[Completion, Seen]:
    async def talk() -> tuple[Completion, Seen]:
        async with ScriptedServer([step]) as server:
            adapter = OpenAIAdapter("m", **{"base_url": server.base_url, **options})
            completion = await adapter.complete(request)
            await adapter.aclose()
            return completion, server.requests[0]

    return asyncio.run(talk())


def test_a_prompt_is_one_turn_at_temperature_zero() -> None:
    expected = {"model": "m", "messages": [{"role": "user", "content": "2 + 2 ="}], "temperature": 0}
    assert expected == fields(Generate("2 + 2 ="))


def test_the_completions_endpoint_gets_the_prompt_as_it_is() -> None:
    assert "2 + 2 =" == fields(Generate("2 + 2 ="), endpoint="completions")["prompt"]
    assert "Hi\nHello\n\n2 + 2 =" == fields(Generate(TALK), endpoint="completions")["prompt"]
    assert "messages" not in fields(Generate("2 + 2 ="), endpoint="completions")


def test_a_conversation_keeps_its_turns_under_the_system_prompt() -> None:
    roles = [turn["role"] for turn in fields(Generate(TALK), system="Be brief.")["messages"]]
    assert ["system", "user", "assistant", "user"] == roles


def test_a_conversation_with_a_system_prompt_keeps_its_own() -> None:
    talk = (Message("system", "Be long."), *TALK)
    system = [turn for turn in fields(Generate(talk), system="Be brief.")["messages"] if turn["role"] == "system"]
    assert [{"role": "system", "content": "Be long."}] == system


def test_every_option_has_its_field() -> None:
    sent = fields(
        Generate("2 + 2 ="), temperature=0.7, top_p=0.9, max_tokens=64, stop="\n", seed=3, logprobs=True,
        extra_body={"top_k": 50},
    )  # fmt: skip
    expected = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 64, "stop": ["\n"], "seed": 3, "logprobs": True}
    assert expected | {"top_k": 50} == {name: sent[name] for name in sent if name not in ("model", "messages")}


def test_the_default_temperature_is_the_servers_where_asked() -> None:
    assert "temperature" not in fields(Generate("2 + 2 ="), temperature="default")


def test_the_limit_goes_by_the_name_that_the_model_wants() -> None:
    sent = fields(Generate("2 + 2 =", max_tokens=9), max_tokens_field="max_completion_tokens")
    assert 9 == sent["max_completion_tokens"]
    assert "max_tokens" not in sent


def test_the_limit_of_a_request_goes_before_the_option() -> None:
    assert 9 == fields(Generate("2 + 2 =", max_tokens=9), max_tokens=64)["max_tokens"]


def test_stops_of_request_and_option_are_joined_once_each() -> None:
    assert ["\n", "Q:", "###"] == fields(Generate("2", stop=("\n", "Q:")), stop=["###", "\n"])["stop"]


def test_each_repeat_has_a_seed_of_its_own() -> None:
    assert [5, 6, 7] == [fields(Generate("2", repeat=repeat), seed=5)["seed"] for repeat in range(3)]
    assert "seed" not in fields(Generate("2", repeat=2))


def test_completions_ask_for_logprobs_by_number() -> None:
    assert 1 == fields(Generate("2"), endpoint="completions", logprobs=True)["logprobs"]
    assert "logprobs" not in fields(Generate("2"))


@given(st.text(st.characters(), max_size=200))
def test_any_prompt_survives_the_wire(prompt: str) -> None:
    body = compact_encoder(allow_nan=True)(request_fields("m", read_options({}), Generate(prompt))).encode("ascii")
    assert body.isascii()
    assert prompt == json.loads(body)["messages"][0]["content"]


@pytest.mark.parametrize(("endpoint", "path"), [("chat", "/v1/chat/completions"), ("completions", "/v1/completions")])
def test_the_endpoint_decides_the_path(endpoint: str, path: str) -> None:
    document = {"choices": [{"text": "4", "message": {"content": "4"}}]}
    completion, seen = exchange(replies(200, json.dumps(document).encode()), Generate("2 + 2 ="), endpoint=endpoint)
    assert ("4", "POST", path) == (completion.text, seen.method, seen.target)


def test_the_key_goes_in_the_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    _, seen = exchange(says("4"), Generate("2 + 2 ="), api_key_env="MY_KEY")
    assert f"Bearer {KEY}" == seen.headers["authorization"]
    assert "application/json" == seen.headers["content-type"]
    assert KEY not in seen.target + seen.body.decode()


@pytest.mark.parametrize("variable", ["", "NOT_SET_ANYWHERE"])
def test_without_a_key_there_is_no_such_header(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, seen = exchange(says("4"), Generate("2 + 2 ="), api_key_env=variable)
    assert "authorization" not in seen.headers


def test_proxies_and_logins_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password word\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    _, seen = exchange(says("4"), Generate("2 + 2 ="), api_key_env="")
    assert "authorization" not in seen.headers


@each_row("encoding", ["gzip", "x-gzip", "GZIP"])
def test_a_compressed_reply_is_read(encoding: str) -> None:
    body = gzip.compress(json.dumps(chat("four " * 20_000)).encode())
    completion, seen = exchange(replies(200, body, {"Content-Encoding": encoding}), Generate("2 + 2 ="))
    assert "four " * 20_000 == completion.text
    assert "gzip" == seen.headers["accept-encoding"]


def test_a_reply_of_just_the_cap_is_read() -> None:
    body = json.dumps(chat("4")).encode()
    completion, _ = exchange(replies(200, body), Generate("2 + 2 ="), max_response_bytes=len(body))
    assert "4" == completion.text


def test_connections_are_kept_and_as_many_as_are_in_flight() -> None:
    async def talk() -> tuple[int, int]:
        async with ScriptedServer([slow(0.03, says("4"))]) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            for _ in range(2):
                await asyncio.gather(*(adapter.complete(Generate("2 + 2 =")) for _ in range(120)))
            await adapter.aclose()
            return len(server.requests), server.connections

    requests, connections = asyncio.run(talk())
    assert 240 == requests
    assert 120 == connections


TWO_LOOPS = """
import asyncio, sys
from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.types import Generate

adapter = OpenAIAdapter("m", base_url=sys.argv[1])
print([asyncio.run(adapter.complete(Generate("2 + 2 ="))).text for _ in range(2)])
"""


def test_an_event_loop_that_ended_with_connections_open_does_not_stop_the_next() -> None:
    with serving([says("4")]) as server:
        command = [sys.executable, "-c", TWO_LOOPS, server.base_url]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "['4', '4']" == done.stdout.strip()


@pytest.mark.again
def test_one_adapter_serves_one_event_loop_after_another_and_leaves_nothing_open() -> None:
    with warnings.catch_warnings(), serving([says("4")]) as server:
        warnings.simplefilter("error")
        adapter = OpenAIAdapter("m", base_url=server.base_url)

        async def talk() -> str:
            completion = await adapter.complete(Generate("2 + 2 ="))
            await adapter.aclose()
            await adapter.aclose()
            return completion.text

        assert ["4", "4"] == [asyncio.run(talk()), asyncio.run(talk())]
        gc.collect()


# Tools


ADD = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def test_tools_are_functions_of_the_body() -> None:
    sent = fields(Generate("2 + 2 =", tools=(ADD,)))
    assert [{"type": "function", "function": ADD}] == sent["tools"]
    assert "tool_choice" not in sent
    assert "tools" not in fields(Generate("2 + 2 =", tool_choice="required"))


@each_row(
    ("choice", "sent"),
    [
        ("auto", None),
        ("none", "none"),
        ("required", "required"),
        ("add", {"type": "function", "function": {"name": "add"}}),
    ],
)
def test_a_choice_of_tools_is_a_word_or_a_function(choice: str, sent: Any) -> None:
    assert sent == fields(Generate("2 + 2 =", tools=(ADD,), tool_choice=choice)).get("tool_choice")


def test_calls_and_their_answers_go_back_as_they_came() -> None:
    calls = (ToolCall("a", "add", '{"a": 1'), ToolCall("b", "add", "{}"))
    talk = (
        Message("user", "?"),
        Message("assistant", "Let me see.", calls),
        Message("tool", "3", tool_call_id="a"),
        Message("tool", "0", tool_call_id="b"),
    )
    _, said, first, second = fields(Generate(talk, tools=(ADD,)))["messages"]
    assert [("a", '{"a": 1'), ("b", "{}")] == [
        (call["id"], call["function"]["arguments"]) for call in said["tool_calls"]
    ]
    assert {"role": "tool", "content": "3", "tool_call_id": "a"} == first
    assert "b" == second["tool_call_id"]


def test_the_completions_endpoint_takes_no_tools() -> None:
    with pytest.raises(AdapterError, match="tools need the endpoint 'chat'"):
        fields(Generate("2 + 2 =", tools=(ADD,)), endpoint="completions")


def test_parallel_calls_come_back_from_a_server() -> None:
    calls = [
        {"id": str(number), "type": "function", "function": {"name": "add", "arguments": f'{{"a": {number}}}'}}
        for number in range(3)
    ]
    document = {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}
    completion, seen = exchange(json_reply(document), Generate("?", tools=(ADD,)), api_key_env="")
    assert [{"a": 0}, {"a": 1}, {"a": 2}] == [call.values for call in completion.tool_calls]
    assert "add" == json.loads(seen.body)["tools"][0]["function"]["name"]


def test_a_wish_that_the_server_refuses_is_left_out_from_then_on_and_another_option_is_not() -> None:
    async def asked(script: list[Step], value: Any, times: int) -> list[bool | None]:
        async with ScriptedServer(script) as server:
            adapter = OpenAIAdapter("m", base_url=server.base_url)
            for _ in range(times):
                with contextlib.suppress(AdapterError):
                    await adapter.complete(Generate("2 + 2 =", options={"response_format": value}))
            await adapter.aclose()
            return ["response_format" in seen.json for seen in server.requests]

    wish, wanted = BestEffort(type="json_schema"), {"type": "json_schema"}
    assert [True, False, False] == asyncio.run(asked([status(400), says("4")], wish, 2))
    assert [True, True] == asyncio.run(asked([says("4")], wish, 2))
    # What is refused for another reason is refused without the wish, too: the server may well have the option.
    assert [True, False, True, False] == asyncio.run(asked([status(400)], wish, 2))
    assert [True, True] == asyncio.run(asked([status(400), says("4")], wanted, 2))


def test_without_a_model_it_asks_for_the_one_of_the_request_also_in_another_process(tmp_path: Path) -> None:
    table = '[tool.lmeval.prices."vendor/m.1"]\nprice_input = 1\nprice_output = 2\n'
    (tmp_path / "pyproject.toml").write_text(table)

    async def talk(adapter: OpenAIAdapter) -> Completion:
        try:
            return await adapter.complete(Generate("x", options={"model": "vendor/m.1"}))
        finally:
            await adapter.aclose()

    with serving([says("4")]) as server:
        adapter = make_adapter("openai:", options={"base_url": server.base_url}, project=tmp_path)
        other = pickle.loads(pickle.dumps(adapter))
        answer = asyncio.run(talk(other))
    assert ["vendor/m.1"] == [seen.json["model"] for seen in server.requests]
    assert ("openai", True, 25e-6) == (other.name, other.model_by_request, answer.cost)


def test_the_prices_of_the_adapters_own_model_are_no_other_models() -> None:
    async def talk(adapter: OpenAIAdapter) -> list[float | None]:
        try:
            requests = [Generate("x"), Generate("x", options={"model": "other"})]
            return [(await adapter.complete(request)).cost for request in requests]
        finally:
            await adapter.aclose()

    with serving([says("4")]) as server:
        free = OpenAIAdapter("m", base_url=server.base_url, price_input=0, price_output=0)
        assert [0.0, None] == asyncio.run(talk(free))
