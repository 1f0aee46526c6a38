"""The adapter ``litellm:MODEL`` against a server on the loopback interface: answers, usage, tools, errors, secrets."""

from __future__ import annotations

import asyncio
import gc
import json
from base64 import b64encode
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import AdapterError, RequestRefused, TransientError, UsageError
from pytest_lmeval.loading import make_adapter
from pytest_lmeval.media.sources import of_bytes
from pytest_lmeval.types import Completion, Generate, Message
from tests.adapters.openai.scripted_server import Seen, Step, hangs, json_reply, serving, status
from tests.needs import installed
from tests.pictures import CAT

KEY = "sk-CANARY-0123456789-abcdef"
TOOL = {"name": "search", "description": "Search.", "parameters": {"type": "object", "properties": {}}}
REPLY = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "mock-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
}


@pytest.fixture(autouse=True)
def _needed() -> None:
    installed("litellm", "clients")


def _ask(step: Step, model: str = "openai/mock-1", /, **given: Any) -> tuple[Completion | AdapterError, list[Seen]]:
    request = Generate(given.pop("prompt", "2 + 2 ="), tools=given.pop("tools", ()))

    async def talk(adapter: Any) -> Completion | AdapterError:
        try:
            return await adapter.complete(request)  # type: ignore[no-any-return]  # any adapter
        except AdapterError as error:
            return error
        finally:
            await adapter.aclose()

    with pytest.MonkeyPatch.context() as patch, serving([step]) as server:
        patch.setenv("MY_KEY", KEY)
        options = {"base_url": server.base_url, "api_key_env": "MY_KEY", "timeout": 20, **given}
        return asyncio.run(talk(make_adapter(f"litellm:{model}", options=options))), [*server.requests]


def test_an_answer_has_its_text_usage_and_cost() -> None:
    answer, seen = _ask(json_reply(REPLY), max_tokens=5, seed=3, price_input=1.0, price_output=2.0)
    assert isinstance(answer, Completion), answer
    assert ("4", "stop", 11, 7, 25e-6) == (
        answer.text,
        answer.finish_reason,
        answer.prompt_tokens,
        answer.completion_tokens,
        answer.cost,
    )
    sent = json.loads(seen[0].body)
    assert (0, 5, 3) == (sent["temperature"], sent["max_tokens"], sent["seed"])
    assert f"Bearer {KEY}" == seen[0].headers["authorization"]


def test_a_picture_is_sent_as_data() -> None:
    prompt = (Message.of_parts("user", ["What?", of_bytes("image", CAT, "cat.png")]),)
    answer, (seen,) = _ask(json_reply(REPLY), prompt=prompt)
    assert isinstance(answer, Completion), answer
    (message,) = json.loads(seen.body)["messages"]
    address = f"data:image/png;base64,{b64encode(CAT).decode()}"
    assert [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": address}}] == message[
        "content"
    ]


def test_prices_are_those_of_litellm_where_it_knows_the_model() -> None:
    known, _ = _ask(json_reply({**REPLY, "model": "gpt-4o-mini"}), "openai/gpt-4o-mini")
    unknown, _ = _ask(json_reply(REPLY))
    assert isinstance(known, Completion)
    assert isinstance(unknown, Completion)
    assert pytest.approx(11 * 0.15e-6 + 7 * 0.6e-6) == known.cost
    assert unknown.cost is None


def test_what_litellm_logs_of_an_answer_is_logged_when_the_adapter_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def note(**_: Any) -> None:
        logged.append(1)

    async def talk() -> int:
        adapter: Any = make_adapter("litellm:openai/mock-1", options=options)
        await adapter.complete(Generate("2 + 2 ="))
        await adapter.aclose()
        return len(logged)

    logged: list[int] = []
    logger: Any = import_module("litellm.integrations.custom_logger").CustomLogger()
    logger.async_log_success_event = note
    monkeypatch.setattr("litellm.callbacks", [logger])
    monkeypatch.setenv("MY_KEY", KEY)
    for number in (1, 2):
        with serving([json_reply(REPLY)]) as server:
            options = {"base_url": server.base_url, "api_key_env": "MY_KEY"}
            assert number == asyncio.run(talk())


def test_calls_of_tools_are_of_the_answer() -> None:
    function = {"name": "search", "arguments": '{"q": "tea"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    reply = {**REPLY, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    answer, seen = _ask(json_reply(reply), tools=(TOOL,))
    assert isinstance(answer, Completion), answer
    assert [("search", '{"q": "tea"}')] == [(call.name, call.arguments) for call in answer.tool_calls]
    assert [{"type": "function", "function": TOOL}] == json.loads(seen[0].body)["tools"]


@pytest.mark.parametrize(
    ("code", "body", "kind", "number"),
    [
        (500, {"error": {"message": "busy"}}, TransientError, 500),
        (429, {"error": {"message": "slow down"}}, TransientError, 429),
        (401, {"error": {"message": f"bad key {KEY}"}}, AdapterError, 401),
        (
            400,
            {"error": {"message": "context length is exceeded", "code": "context_length_exceeded"}},
            RequestRefused,
            400,
        ),
    ],
)
def test_errors_are_asked_again_by_the_run_alone(code: int, body: Any, kind: type, number: int) -> None:
    error, seen = _ask(status(code, json.dumps(body)))
    assert (kind, number, 1) == (type(error), getattr(error, "status", None), len(seen)), error
    assert isinstance(error, Exception)
    assert KEY not in repr((error, getattr(error, "said", None), error.__context__, error.__cause__))


UNSUPPORTED = "Unsupported value: 'temperature' does not support 0 with this model."
REFUSED = {"error": {"message": UNSUPPORTED, "param": "temperature", "code": "unsupported_value"}}


@pytest.mark.filterwarnings("ignore:coroutine", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("model", "requests"), [("openai/mock-1", 1), ("openai/gpt-5", 0)])
def test_an_option_that_the_server_or_litellm_refuses_is_named_with_the_value_to_set(model: str, requests: int) -> None:
    error, seen = _ask(status(400, json.dumps(REFUSED)), model)
    assert str(error).endswith(
        "; set --lm-adapter-arg=temperature=default, for a judge --lm-judge-arg=temperature=default"
    )
    assert requests == len(seen)
    answer, _ = _ask(json_reply(REPLY), model, temperature="default")
    assert isinstance(answer, Completion), answer
    gc.collect()  # litellm leaves a coroutine that was never awaited, and Python warns in whichever test comes next


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    error, _ = _ask(hangs(), timeout=0.5)
    assert isinstance(error, TransientError)
    assert "AttemptTimeout" == type(error).__name__


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sead": 1}, "unknown option 'sead'"),
        ({"temperature": "hot"}, "option temperature"),
        ({"extra_body": {"num_retries": 3}}, "no num_retries in it"),
        ({"extra_body": {"api_key": KEY}}, "no api_key in it"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        make_adapter("litellm:openai/m", options=options)
    assert KEY not in str(caught.value)


def test_without_a_model_it_asks_for_the_one_that_each_request_names(tmp_path: Path) -> None:
    prices = "[tool.lmeval.prices.'openai/mock-1']\nprice_input = 1\nprice_output = 2\n"
    (tmp_path / "pyproject.toml").write_text(prices)
    named = [Generate("x", options={"model": name}) for name in ("openai/mock-1", "openai/mock-2")]

    async def talk(adapter: Any) -> list[Completion]:
        try:
            with pytest.raises(RequestRefused, match="litellm: has no model of its own"):
                await adapter.complete(Generate("x"))
            return [await adapter.complete(request) for request in named]
        finally:
            await adapter.aclose()

    with serving([json_reply(REPLY)]) as server:
        options = {"base_url": server.base_url, "extra_body": {"api_version": "1"}}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", KEY)
            adapter = make_adapter("litellm:", options=options, project=tmp_path)
            answers = asyncio.run(talk(adapter))
        assert ["mock-1", "mock-2"] == [seen.json["model"] for seen in server.requests]
    assert ("litellm", [25e-6, None]) == (adapter.name, [answer.cost for answer in answers])
