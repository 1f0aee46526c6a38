"""A run against a server of the Messages interface: conversations, thoughts, costs, faults, a key that is nowhere."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.openai.asking import KEY
from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, serving, status
from tests.conftest import Project

from .messages_server import call, fault, message, speaks, text, thought

LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}
PRICES = ["--lm-adapter-arg=price_input=3", "--lm-adapter-arg=price_output=15"]

CLIENT = """
import asyncio, json, urllib.request
from pytest_lmeval import eval_task

def answered(url, token):
    messages = [{"role": "system", "content": "be short"}, {"role": "user", "content": "say: 4"}]
    body = {"model": "m", "messages": messages, "temperature": 0.5, "seed": 3, "max_tokens": 9, "stop": "\\n"}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))

@eval_task("client")
async def test_client(lm):
    reply = await asyncio.to_thread(answered, lm.base_url, lm.token)
    assert "4" == reply["choices"][0]["message"]["content"]
    assert "5" == (await lm.ask("say: 5", model="other")).text
"""


def said_last(body: dict[str, Any]) -> str:
    """Return the last thing that was said to the model, or the results of its calls."""
    blocks = body["messages"][-1]["content"]
    return " ".join(str(block.get("text") or block.get("content")) for block in blocks)


def model(body: dict[str, Any]) -> dict[str, Any]:
    """Answer what stands behind ``say:``, think before it if that may be, and call twice for ``call``."""
    said = said_last(body).rpartition("say: ")[2]
    if said == "call":
        return message(text("hm"), call("t1", "look", at=1), call("t2", "look", at=2), stop_reason="tool_use")
    thoughts = [thought(f"they want {said}")] if "thinking" in body else []
    return message(*thoughts, text(said))


class Server:
    """Answers by ``model``; busy once for each prompt with ``busy``, and it refuses those with ``refuse``."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    async def __call__(self, exchange: Exchange) -> None:
        said = said_last(exchange.seen.json)
        self.seen[said] += 1
        if "refuse" in said:
            key = exchange.seen.headers["x-api-key"]
            await fault(400, "invalid_request_error", f"not for {key}")(exchange)
        elif "busy" in said and self.seen[said] == 1:
            await status(529, '{"type": "error", "error": {"type": "overloaded_error"}}', Retry_After="0")(exchange)
        else:
            await speaks(model)(exchange)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with serving([Server()]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url.removesuffix("/v1"))
        yield server


@pytest.fixture
def asking(project: Project, server: ScriptedServer) -> Project:
    turns = [{"user": "say: call", "targets": ["seen"]}, {"user": "say: five", "targets": ["five"]}]
    tools = {"tools": [LOOK], "responses": {"look": "say: seen"}}
    project.task("tasks/talks.jsonl", {"id": "talk", "turns": turns, "extras": tools})
    calls = [{"name": "look", "arguments": {"at": at}} for at in (1, 2)]
    extras = {"tools": [LOOK], "calls": calls}
    project.task("tasks/calls.jsonl", {"id": "calls", "prompt": "say: call", "metric": "tool_calls", "extras": extras})
    says = [project.record(each, each) for each in ("plain", "busy", "refuse")]
    project.task("tasks/t.jsonl", *says, project.record("wrong", "5", target="6"))
    return project


@pytest.mark.parametrize(
    ("stream", "processes"), [("false", "-n0"), ("true", "-n0"), pytest.param("true", "-n2", marks=pytest.mark.again)]
)
def test_a_run_asks_converses_retries_and_counts(
    asking: Project, server: ScriptedServer, stream: str, processes: str
) -> None:
    arguments = [f"--lm-adapter-arg=stream={stream}", *PRICES, processes, "--lm-include-per-example", "-rA", "-vv"]
    result = asking.run_pytest("--lm-adapter=anthropic:m", *arguments, "--showlocals")
    assert 3 == result.ret
    statuses = {id.partition(":")[2]: entry["status"] for id, entry in asking.ledger().items()}
    passed = dict.fromkeys(("talk", "calls", "plain", "busy"), "passed")
    assert passed | {"wrong": "failed", "refuse": "error"} == statuses
    board = asking.board()
    # Three requests of the conversation, and one of each other example that was answered.
    assert (7 * 11, 7 * 7) == (board["usage"]["prompt_tokens"], board["usage"]["completion_tokens"])
    assert pytest.approx(7 * (11 * 3 + 7 * 15) / 1e6) == board["usage"]["cost"]
    assert ["claude-scripted-2026"] == [*board["served_by"]]
    assert "ANTHROPIC_BASE_URL" == board["manifest"]["base_url_from"]
    result.stdout.fnmatch_lines(["*adapter anthropic:m at http://127.0.0.1:* (ANTHROPIC_BASE_URL)*"])
    assert {KEY} == {seen.headers["x-api-key"] for seen in server.requests}
    written = [path.read_bytes() for path in (asking.path / "reports").rglob("*") if path.is_file()]
    assert not [data for data in written if KEY.encode() in data]
    assert KEY not in result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["*not for [*][*][*]*"])


def test_thoughts_are_recorded_never_scored_and_sent_back_nowhere(asking: Project, server: ScriptedServer) -> None:
    result = asking.run_pytest("--lm-adapter=anthropic:m", "--lm-adapter-arg=thinking=1024", "-k", "talk or plain")
    assert 0 == result.ret
    ledger = asking.ledger()
    assert (["they want plain"], ["plain"]) == (list(ledger["t:plain"]["thoughts"]), list(ledger["t:plain"]["outputs"]))
    bodies = [seen.json for seen in server.requests]
    assert "thinking" not in json.dumps([body["messages"] for body in bodies])
    assert [3, 1] == [sum("thinking" in body for body in bodies), sum("thinking" not in body for body in bodies)]


def test_a_run_without_a_key_or_a_model_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    project.small_tasks()
    for adapter, said in (("anthropic:m", "ANTHROPIC_API_KEY holds no API key"), ("anthropic", "anthropic:MODEL")):
        result = project.run_pytest(f"--lm-adapter={adapter}")
        assert (4, True) == (result.ret, said in result.stderr.str() + result.stdout.str())


def test_a_client_of_another_interface_is_answered_and_what_does_not_pass_is_reported(
    project: Project, server: ScriptedServer
) -> None:
    project.write("test_client.py", CLIENT)
    result = project.run_pytest("--lm-adapter=anthropic:m", "--lm-gate=none")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["*dropped between clients and m: seed (1)*"])
    body, other = [seen.json for seen in server.requests]
    assert "other" == other["model"]
    assert {"model": "m", "max_tokens": 9, "system": "be short", "temperature": 0.5} == {
        name: value for name, value in body.items() if name != "messages"
    }
