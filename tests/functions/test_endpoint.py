"""The endpoint over real HTTP: whose a request is, what is answered, and how a refusal looks."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, BudgetSpent
from pytest_lmeval.functions.clients.body import ClientRequest
from pytest_lmeval.functions.clients.chat_request import read_request
from pytest_lmeval.functions.clients.forwarding import Forwarded
from pytest_lmeval.functions.endpoint import Endpoint
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.types import Completion, ToolCall

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Heard:
    """Answers with ``answer``, or raises it, and keeps what it was given."""

    def __init__(self, answer: Completion | Exception) -> None:
        self._answer = answer
        self.asked: list[ClientRequest] = []
        self.refused: list[tuple[str, str]] = []

    async def answer(self, state: ExampleState, asked: ClientRequest) -> Completion:
        self.asked.append(asked)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    takes_messages = False

    async def forward(self, state: ExampleState, asked: Forwarded) -> Any:
        raise AssertionError(asked.target)

    def of_kept_client(self, owner: str) -> Heard:
        raise AssertionError(owner)

    def refuse(self, state: ExampleState, what: str, error: AdapterError) -> None:
        self.refused.append((what, str(error)))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    loop = Loop(lambda: None)
    endpoint = Endpoint(loop)
    yield endpoint
    endpoint.close()
    loop.close()


def send(endpoint: Endpoint, heard: Any, path: str = "chat/completions", method: str = "POST", **body: Any) -> Any:
    """Send a request of an example's; return status, body and whether it may be sent again."""
    token = endpoint.register(ExampleState("t", "a", 0, lambda state, said: None), heard)
    connection = http.client.HTTPConnection(endpoint.address or endpoint.root.removeprefix("http://"), timeout=60)
    connection.request(method, f"/e/{token}/v1/{path}", json.dumps(CHAT | body))
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    endpoint.forget(token)
    return reply.status, json.loads(text) if text.startswith("{") else text, reply.headers["x-should-retry"]


def test_what_no_interface_has_is_refused_and_the_path_is_named(endpoint: Endpoint) -> None:
    heard = Heard(Completion("no"))
    for method, path in (("POST", "files"), ("GET", "responses/1"), ("POST", "models"), ("GET", "chat/completions")):
        code, reply, again = send(endpoint, heard, path, method)
        known = (
            "POST /chat/completions, POST /responses, POST /embeddings, POST /moderations, POST /rerank, GET /models"
        )
        said = f"{method} /{path} is not answered here; expected {known}; ini lm_forward_paths names more"
        assert (404, said, "false") == (code, reply["error"]["message"], again)
        assert (f"{method} /{path}", f"lm.base_url: {said}") == heard.refused.pop()
    assert [] == heard.asked


def _with(error: AdapterError, status: int, **said: str) -> AdapterError:
    error.status, error.said = status, said
    return error


def test_an_error_has_the_status_and_the_words_of_the_server_or_its_own(endpoint: Endpoint) -> None:
    cases = [
        (_with(AdapterError("x"), 400), 400, "x", "invalid_request_error"),
        (_with(AdapterError("x"), 422, message="words", type="own"), 422, "words", "own"),
        (_with(AdapterError("x"), 429), 429, "x", "rate_limit_error"),
        (_with(AdapterError("x"), 503), 503, "x", "server_error"),
        (AdapterTimeout("late"), 504, "late", "server_error"),
        (AdapterDown("gone"), 502, "gone", "server_error"),
        (BudgetSpent("spent"), 402, "spent", "invalid_request_error"),
    ]
    for error, status, message, kind in cases:
        code, reply, again = send(endpoint, Heard(error))
        wanted = (status, {"message": message, "type": kind, "code": None, "param": None}, "false")
        assert wanted == (code, reply["error"], again)


def test_what_the_model_wrote_comes_back_where_servers_put_it(endpoint: Endpoint) -> None:
    call = ToolCall("c1", "look", '{"at": 1}')
    answer = Completion("yes", thoughts="hm", tool_calls=(call,), prompt_tokens=3, completion_tokens=2)
    _, whole, _ = send(endpoint, Heard(answer))
    (choice,) = whole["choices"]
    assert ("yes", "hm", None) == tuple(choice["message"][name] for name in ("content", "reasoning_content", "refusal"))
    assert {"name": "look", "arguments": '{"at": 1}'} == choice["message"]["tool_calls"][0]["function"]
    assert ("tool_calls", 5) == (choice["finish_reason"], whole["usage"]["total_tokens"])
    _, streamed, _ = send(endpoint, Heard(answer), stream=True, stream_options={"include_usage": True})
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    deltas = [each["delta"] for event in events for each in event["choices"]]
    joined = {name: "".join(delta.get(name) or "" for delta in deltas) for name in ("content", "reasoning_content")}
    assert {"content": "yes", "reasoning_content": "hm"} == joined
    assert 5 == events[-1]["usage"]["total_tokens"]
    _, refusal, _ = send(endpoint, Heard(Completion("I cannot", finish_reason="refusal")))
    message = refusal["choices"][0]["message"]
    assert (None, "I cannot", "stop") == (
        message["content"],
        message["refusal"],
        refusal["choices"][0]["finish_reason"],
    )


def test_every_option_of_a_request_is_read(endpoint: Endpoint) -> None:
    tool = {"type": "function", "function": {"name": "look", "strict": True, "description": None}}
    body = CHAT | {"tools": [tool], "tool_choice": {"type": "function", "function": {"name": "look"}}, "top_k": 5}
    asked = read_request(
        json.dumps(body | {"max_completion_tokens": None, "max_tokens": 7, "stop": ["a", ""]}).encode()
    )
    wanted = {"stop": ("a",), "max_tokens": 7, "options": {"top_k": 5}, "tool_choice": "look"}
    assert wanted | {"tools": ({"name": "look", "strict": True},)} == asked.fields
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    talk = [{"role": "user", "content": parts, "name": "me"}, {"role": "tool", "content": "c", "tool_call_id": "c1"}]
    asked = read_request(json.dumps({"messages": talk}).encode())
    assert [("user", "ab", ""), ("tool", "c", "c1")] == [
        (each.role, each.content, each.tool_call_id) for each in asked.messages
    ]
    assert ('{"message":{"name":"me"}}', ()) == (asked.messages[0].extra, asked.dropped)


@pytest.mark.parametrize(
    "content",
    [["hi"], [5, {"type": "text", "text": "a"}], [{"type": "text", "text": 5}], 5, None],
)
def test_content_that_is_no_text_is_refused_and_shown(content: object) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": content}]}).encode()
    with pytest.raises(ValueError, match=r"^messages.*: expected text content, got ") as raised:
        read_request(body)
    assert repr(content)[:60] in str(raised.value)


def test_an_image_without_its_data_is_refused() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}).encode()
    with pytest.raises(ValueError, match=r"^messages\[0\].content\[0\]: expected its data or an address"):
        read_request(body)


def test_a_request_leaves_no_line_in_the_log(endpoint: Endpoint, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        assert 200 == send(endpoint, Heard(Completion("x")))[0]
    assert [] == [record.name for record in caplog.records if record.name.startswith("aiohttp")]


def test_content_beside_calls_may_be_absent_and_is_text_or_refused() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    def asked(**content: object) -> ClientRequest:
        return read_request(json.dumps({"messages": [{"role": "assistant", "tool_calls": [call], **content}]}).encode())

    allowed: list[dict[str, object]] = [{}, {"content": None}, {"content": ""}, {"content": []}]
    for content in allowed:
        (message,) = asked(**content).messages
        assert ("", (("c1", "look", "{}"),)) == (message.content, message.tool_calls)
    for wrong in (5, [{"type": "refusal", "refusal": "no"}]):
        with pytest.raises(ValueError, match=r"^messages.*: expected text content, got "):
            asked(content=wrong)


def test_as_many_ended_examples_are_known_as_are_kept(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_lmeval.functions.endpoint._MOST_ENDED", 2)
    # What the other tests of the file left is known no more.
    monkeypatch.setattr(endpoint, "_ended", {})
    heard: Any = Heard(Completion("x"))
    tokens = [endpoint.register(ExampleState("t", id, 0, lambda state, said: None), heard) for id in "abc"]
    known = []
    for token in tokens:
        endpoint.forget(token)
        statuses = [_status(endpoint, each) for each in tokens]
        known.append([each for each, status in zip(tokens, statuses, strict=True) if status == 410])
    assert [tokens[:1], tokens[:2], tokens[1:]] == known


def _status(endpoint: Endpoint, token: str) -> int:
    """Return the status that a request with this token gets."""
    connection = http.client.HTTPConnection(endpoint.root.removeprefix("http://"), timeout=60)
    connection.request("POST", "/v1/chat/completions", json.dumps(CHAT), {"Authorization": f"Bearer {token}"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_address_is_known_while_the_loop_waits_for_whoever_asks_for_it() -> None:
    loop, known = Loop(lambda: None), threading.Event()
    endpoint = Endpoint(loop)

    async def wait() -> bool:
        return known.wait(20)

    waited = loop.submit(wait())
    assert endpoint.root.startswith("http://127.0.0.1:")
    known.set()
    assert waited.result()
    endpoint.close()
    loop.close()
