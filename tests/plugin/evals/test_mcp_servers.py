"""Servers of the Model Context Protocol, made with its SDK: what they offer and return, and what is an error."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

GUIDE = (Path(__file__).parents[3] / "docs/functions.md").read_text("utf-8")
MODEL = """
from pytest_lmeval import Completion

class Model:
    name = "model.v1"

    async def complete(self, request):
        return Completion(" ".join(tool["name"] for tool in request.tools))
"""
USES = """
import sys
from pytest_lmeval import ToolCall, eval_task

COMMAND = [sys.executable, "server.py"]
CALLS = [
    ToolCall("1", "find", '{"order": "A17"}'), ToolCall("2", "find", '{"order": "Z99"}'),
    ToolCall("3", "find", "{"), ToolCall("4", "fund", "{}"), ToolCall("5", "find", '{"ordr": 1}'),
]

@eval_task("awaited")
async def test_awaited(lm):
    server = await lm.mcp(COMMAND, env={"OWN": "1"}, timeout=300)
    found = [await server.call("names")] + [await server.call(call) for call in CALLS]
    lm.output([[each, each.structured, each.is_error] for each in found])
    assert "find names crash" == (await lm.ask("Which?", tools=server.tools)).text
    assert lm.called("find", times=4)

@eval_task("blocking")
def test_blocking(lm):
    server = lm.mcp("python server.py".replace("python", sys.executable), timeout=300)
    lm.output([server.call("find", {"order": "B22"}), repr(server)])
    assert lm.called("find", times=1)
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.copy("mcp_servers", "server.py", "test_faults.py")
    project.write("test_shop.py", USES)
    project.write("model.py", MODEL)
    project.usual = (*project.usual, "--lm-include-per-example")
    return project


def lines(project: Project, name: str) -> list[str]:
    path = project.path / name
    return path.read_text().split() if path.exists() else []


def outputs(project: Project, folder: str = "reports") -> dict[str, Any]:
    return {key: each["details"].get("output") for key, each in project.examples(folder).items()}


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            time.sleep(0.05)
            continue
        return True
    return False


def test_a_server_answers_a_model_and_a_recording_needs_neither_server_nor_sdk(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    result = shop.run("test_shop.py", "--lm-report-dir=live")
    assert 0 == result.ret, result.stdout.str()
    live = outputs(shop, "live")
    names, found, unknown, broken, misspelt, wrong = live["awaited:test_awaited"]
    assert (
        {"OWN", "PATH"}
        <= {*names[0].split()}
        <= {"OWN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}
    )
    assert ({"status": "A17 shipped"}, False) == (found[1], found[2])
    assert json.loads(found[0]) == found[1]
    assert ("Error executing tool find" in unknown[0], unknown[2]) == (True, True)
    assert ["the arguments are not a JSON object", None, True] == broken
    assert misspelt[0].startswith("unknown tool 'fund'; did you mean 'find'?")
    assert ("order" in wrong[0], wrong[2]) == (True, True)
    found, shown = live["blocking:test_blocking"]
    assert {"status": "B22 shipped"} == json.loads(found)
    assert "<lm.mcp python server.py: find, names, crash>" == shown
    steps = shop.examples("live")["awaited:test_awaited"]["details"]["steps"]
    assert ["mcp", *["tool"] * 6, "request"] == [step["kind"] for step in steps]
    assert ["find", "names", "crash"] == [tool["name"] for tool in steps[0]["output"]]
    assert 2 == len(lines(shop, "started.txt"))
    assert [True, True] == [has_ended(int(pid)) for pid in lines(shop, "started.txt")]
    shop.write("mcp.py", "raise ImportError('hidden')")
    again = shop.run("test_shop.py", "--lm-report-dir=again", "--lm-adapter=replay:live/ledger.jsonl")
    assert 0 == again.ret, again.stdout.str()
    assert (2, ["A17", "Z99", "B22"]) == (len(lines(shop, "started.txt")), lines(shop, "ran.txt"))
    assert live == outputs(shop, "again")
    assert shop.board("live")["digest"] == shop.board("again")["digest"]
    # Without a recording, the missing package is named.
    assert 3 == shop.run("test_shop.py").ret
    errors = {each["error"] for each in shop.examples().values()}
    told = "needs mcp, which cannot be imported (hidden): pip install 'pytest-lmeval[mcp]'"
    assert [True, True] == [error.endswith(told) for error in errors]


def test_a_server_without_an_answer_is_an_error_of_the_example(shop: Project) -> None:
    # Python warns of a coroutine that was never awaited.
    assert 3 == shop.run("test_faults.py", "-Wignore").ret
    examples = shop.examples()
    # A server's reply that a call is wrong is a result, for the model.
    rejected = examples.pop("cases:rejected")
    assert ("passed", "'no such order'") == (rejected["status"], rejected["details"]["output"])
    errors = {key: each.get("error", "") for key, each in examples.items()}
    told = {
        "dies": "a call of crash failed: ",
        "picture": "the result of find holds a part of the type 'image'; only text is read",
        "misspelt": "server.call: unknown tool 'fund'; did you mean 'find'? (choices: find, lost)",
        "hangs": "no reply to its list of tools within 2 s; the server wrote: wait",
        "ends": "its list of tools failed: ",
        "missing": "its list of tools failed: FileNotFoundError",
        "twice": "tools: two tools are called 'find'",
        "nothing": "tools: expected a non-empty array of functions",
        "two servers": "two tools of the example are called 'find': that of lm.mcp(\"python -c ' import json, sys",
        "no command": "lm.mcp: expected a command, a list of its parts, or an http address, got ''",
        "no time": "lm.mcp: timeout: expected a number of seconds above 0, got 0",
        "address": "its list of tools failed: ",
    }
    assert {} == {name: errors[f"cases:{name}"] for name, text in told.items() if text not in errors[f"cases:{name}"]}
    assert "no more paper" in errors["cases:dies"]
    assert "no licence" in errors["cases:ends"]
    assert "lm.mcp was never awaited" in errors["forgotten:test_forgotten"]
    ledger = (shop.path / "reports/ledger.jsonl").read_text()
    assert ("secret-word" in ledger, "word@" in ledger, "key=word" in ledger) == (False, False, False)
    assert [True] == [has_ended(int(pid)) for pid in lines(shop, "started.txt")]


LOOPS = """
from pytest_lmeval import Completion, ToolCall

class Model:
    name = "model.v1"

    async def complete(self, request):
        *_, last = request.prompt
        if last.role == "tool":
            return Completion(f"It says: {last.content}")
        return Completion("", tool_calls=(ToolCall("1", "find", '{"order": "A17"}'),))
"""


def test_the_example_of_the_guide_lets_a_model_call_the_server_until_it_answers(shop: Project) -> None:
    (example,) = re.findall(r"```python\n(@eval_task\(\"shop\".*?)```", GUIDE, re.DOTALL)
    source = example.replace('"python shop_server.py"', f'"{sys.executable} server.py", timeout=300')
    shop.write("test_shop.py", f"from pytest_lmeval import eval_task\n\n{source}")
    shop.write("questions.jsonl", '{"id": "a17", "question": "Where is A17?", "expected": "A17 shipped"}')
    shop.write("model.py", LOOPS)
    result = shop.run("test_shop.py")
    assert 0 == result.ret, result.stdout.str()


def test_a_server_at_an_address_is_asked_as_one_of_a_command(shop: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [sys.executable, "server.py", "streamable-http", str(port)]
    server = subprocess.Popen(command, cwd=shop.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        shop.edit("test_shop.py", 'COMMAND, env={"OWN": "1"}', f'"http://127.0.0.1:{port}/mcp"')
        result = shop.run("test_shop.py", "-k", "awaited")
        assert 0 == result.ret, result.stdout.str()
        assert {"status": "A17 shipped"} == outputs(shop)["awaited:test_awaited"][1][1]
    finally:
        server.kill()
        server.wait()


SHARED = """
import sys
import pytest
from pytest_lmeval import McpServer, eval_task

@pytest.fixture(scope="session")
def command():
    return [sys.executable, "server.py"]

async def ship(server: McpServer, row):
    if row["id"] == "crash":
        await server.call("crash")
    return await server.call("find", {"order": row["id"]})

@eval_task("awaited", data=[{"id": id} for id in ("A1", "A2", "A3", "A4")])
async def test_awaited(row, lm, command):
    assert f"{row['id']} shipped" in await ship(await lm.mcp(command, shared=True, timeout=300), row)

@eval_task("blocking", data=[{"id": "B1"}, {"id": "B2"}])
def test_blocking(row, lm, command):
    assert "shipped" in lm.mcp(command, shared=True, timeout=300).call("find", {"order": row["id"]})

@eval_task("dies", data=[{"id": "crash"}])
async def test_dies(row, lm, command):
    await ship(await lm.mcp(command, shared=True, timeout=300), row)

@eval_task("later", data=[{"id": "C1"}])
def test_later(row, lm, command):
    assert "shipped" in lm.mcp(command, shared=True, timeout=300).call("find", {"order": row["id"]})
"""


def test_examples_share_a_server_until_the_run_ends_and_get_another_if_it_dies(shop: Project) -> None:
    shop.write("test_shop.py", SHARED)
    result = shop.run("test_shop.py", "-k", "awaited or blocking", "--lm-report-dir=live")
    assert 0 == result.ret, result.stdout.str()
    assert (1, 6) == (len(lines(shop, "started.txt")), len(lines(shop, "ran.txt")))
    assert has_ended(int(*lines(shop, "started.txt")))
    again = shop.run("test_shop.py", "-k", "awaited or blocking", "--lm-adapter=replay:live/ledger.jsonl")
    assert (0, 1) == (again.ret, len(lines(shop, "started.txt"))), again.stdout.str()
    assert 3 == shop.run("test_shop.py", "-k", "dies or later", "--lm-concurrency=1").ret
    examples = shop.examples()
    assert "a call of crash failed: " in examples["dies:crash"]["error"]
    assert ("passed", 3) == (examples["later:C1"]["status"], len(lines(shop, "started.txt")))
    assert [True] * 3 == [has_ended(int(pid)) for pid in lines(shop, "started.txt")]
