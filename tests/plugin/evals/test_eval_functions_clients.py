"""The endpoint for an application's own client, with the real client of OpenAI and plain HTTP."""

from __future__ import annotations

from tests.adapters.openai.scripted_server import cut_off, replies, says, serving, status
from tests.conftest import Project
from tests.needs import installed

MODEL = """
import asyncio
from pytest_lmeval import Completion
from pytest_lmeval.types import ToolCall

class Model:
    name = "stub.v1"

    async def complete(self, request):
        await asyncio.sleep(0.01)
        if request.prompt[-1].role == "tool":
            return Completion(f"{request.id} {request.prompt[-1].content}")
        if request.text.startswith("{"):
            return Completion(request.text)
        if request.tools:
            return Completion("", tool_calls=(ToolCall("call00001", request.tools[0]["name"], '{"q": 1}'),))
        return Completion(f"{request.id}: {request.text}", prompt_tokens=3, completion_tokens=2)
"""
AGENT = """
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pytest_lmeval import eval_task

@eval_task("agent", data=[{"id": f"e{n}"} for n in range(6)])
async def test_agent(row, lm):
    provider = OpenAIProvider(base_url=lm.base_url, api_key=lm.token)
    agent = Agent(OpenAIChatModel("any", provider=provider), system_prompt="Use the tool.")

    @agent.tool_plain
    def search(q: int) -> str:
        lm.step("tool", "search", {"q": q}, f"found {q}")
        return f"found {q}"

    result = await agent.run("What is there?")
    assert f"{row['id']} found 1" == result.output
    assert ["request", "tool", "request"] == [step.kind for step in lm.trace]
"""


def test_every_request_of_a_client_or_an_agent_belongs_to_its_own_example(project: Project) -> None:
    installed("openai")
    installed("pydantic_ai")
    project.write("model.py", MODEL)
    project.copy("eval_clients")
    project.write("tests/test_agent.py", AGENT)
    result = project.run("tests", "-Wignore")
    # Some of them ask as no example, on purpose.
    assert 3 == result.ret, result.stdout.str()
    strays = (" to lm.base_url after their example", " to the endpoint that name no example")
    assert all(any(stray in why for stray in strays) for why in project.board()["interruptions"])
    counts = project.board()["counts"]
    assert 50 + 6 + 4 + 4 == counts["scored"] == counts["collected"]
    assert 60 + 20 + 3 + 4 <= project.board()["usage"]["completion_tokens"] / 2


def test_tools_that_are_none_are_refused_before_the_model_is_asked(project: Project) -> None:
    project.write(
        "test_tools.py",
        """
from pytest_lmeval import eval_task

LOOK = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}
ASKED = {
    "schema": {"tools": [{"name": "look", "parameters": {"type": "objekt"}}]},
    "no list": {"tools": LOOK},
    "choice": {"tools": [LOOK], "tool_choice": "lok"},
    "alone": {"tool_choice": "look"},
}

@eval_task("tools", data=[{"id": id} for id in ASKED])
def test_tools(row, lm):
    lm.ask("x", **ASKED[row["id"]])
""",
    )
    result = project.run("test_tools.py")
    assert (3, []) == (result.ret, project.calls())
    result.stdout.fnmatch_lines(
        [
            "*schema could not be scored (error): test_tools.py:14: lm.ask: tools?0?.parameters.type: 'objekt' is not*",
            "*no list could not be scored*lm.ask: tools: expected a non-empty array of functions, got an object with *",
            "*choice could not be scored*lm.ask: tool_choice: 'lok' is not one of *did you mean 'look'?",
            "*alone could not be scored*lm.ask: tool_choice: 'look' is not one of auto, none, required*",
        ]
    )


PASSED_ON = """
import asyncio
import openai
from pytest_lmeval import eval_task

SAID = {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": True}}

@eval_task("options")
async def test_options(lm):
    client = openai.AsyncOpenAI(api_key="unused", base_url=lm.base_url, max_retries=0)
    await client.chat.completions.create(
        **SAID, reasoning_effort="low", parallel_tool_calls=False, logprobs=True, user="me", tools=[TOOL],
        temperature=0.5, max_completion_tokens=5, stop="end", extra_body={"chat_template_kwargs": {"think": False}})
    await client.chat.completions.create(**SAID, reasoning_effort="high")
    answer = await client.chat.completions.create(**SAID, reasoning_effort="low")
    lm.note("said", answer.choices[0].message.content)

@eval_task("refused")
async def test_refused(lm):
    client = openai.AsyncOpenAI(api_key="unused", base_url=lm.base_url, max_retries=2)
    try:
        await client.chat.completions.create(**SAID)
    except openai.BadRequestError as error:
        assert ("too long", "own_type", "context_length_exceeded") == (error.body["message"], error.type, error.code)
"""


def test_options_reach_the_server_and_its_refusals_the_client(project: Project) -> None:
    installed("openai")
    said = '{"error": {"message": "too long", "type": "own_type", "code": "context_length_exceeded"}}'
    project.write("test_client.py", PASSED_ON)
    with serving([says("one"), says("two"), says("three"), status(400, said)]) as server:
        one_by_one = ("-Wignore", "--lm-concurrency=1", "test_client.py")
        address = f"base_url={server.base_url}"
        result = project.run_pytest(*one_by_one, "--lm-adapter=openai:tiny", "--lm-adapter-arg", address)
        asked = [seen.json for seen in server.requests]
    assert (3, 4) == (result.ret, len(asked)), result.stdout.str()
    wanted = {"reasoning_effort": "low", "parallel_tool_calls": False, "logprobs": True, "user": "me"}
    wanted |= {
        "temperature": 0.5,
        "max_completion_tokens": 5,
        "stop": ["end"],
        "chat_template_kwargs": {"think": False},
    }
    function = {"name": "look", "parameters": {"type": "object"}, "strict": True}
    wanted |= {"model": "tiny", "tools": [{"type": "function", "function": function}]}
    assert wanted == {name: asked[0][name] for name in wanted}
    result.stdout.fnmatch_lines(
        [
            "*refused could not be scored (error): HTTP 400 from /v1/chat/completions: *too long*",
            "clients asked for gpt-4o (4); tiny was asked instead",
            "dropped between clients and tiny: choices[[]].logprobs (1)",
        ]
    )
    # What was asked with other options is another request, also where answers are read back.
    project.write("test_client.py", PASSED_ON.replace('"low")', '"none")'))
    replayed = project.run_pytest(
        "-Wignore", "test_client.py::test_options", "--lm-adapter=replay:reports/ledger.jsonl"
    )
    replayed.stdout.fnmatch_lines(["*options could not be scored (error): *"])
    assert 3 == replayed.ret


HUNG_UP = """
import asyncio, json, time
from pytest_lmeval import eval_task

BODY = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()

@eval_task("hung_up")
async def test_hung_up(lm):
    host, _, path = lm.base_url.removeprefix("http://").partition("/")
    _, writer = await asyncio.open_connection(*host.split(":"))
    head = f"POST /{path}/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(BODY)}\\r\\n\\r\\n"
    writer.write(head.encode() + BODY)
    while not lm.trace:
        await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()
    while not lm.trace[0].cancelled:
        await asyncio.sleep(0.01)
    assert "yes" == (await lm.ask("after it")).text
"""


def test_a_client_that_hangs_up_has_cancelled_its_request_and_stops_no_other(project: Project) -> None:
    model = project.path / "model.py"
    project.write("test_client.py", HUNG_UP)
    model.write_text(
        "import asyncio\nfrom pytest_lmeval import Completion\n\nclass Model:\n    name = 'stub.v1'\n\n"
        "    async def complete(self, request):\n        await asyncio.sleep(0.3)\n"
        "        return Completion('yes', cost=1.0)\n"
    )
    # What the first request costs is known once its answer is there, though nobody waits for it.
    result = project.run("test_client.py", "--lm-max-cost=2")
    assert 0 == result.ret, result.stdout.str()
    stopped = project.run("test_client.py", "--lm-max-cost=1.5")
    stopped.stdout.fnmatch_lines(["*stopped by --lm-max-cost: 1 of 1.5 is spent*"])
    assert 3 == stopped.ret


def test_each_repeat_finds_its_own_address_in_the_environment(project: Project) -> None:
    project.write(
        "test_env.py",
        """
import os
from pytest_lmeval import eval_task

SEEN = []

@eval_task("env", data=[{"id": "a"}, {"id": "b"}])
def test_env(lm_env, row, lm):
    SEEN.append(os.environ["OPENAI_BASE_URL"])
    assert SEEN[-1] == lm.base_url

def test_after():
    assert (4, False) == (len({*SEEN}), "OPENAI_BASE_URL" in os.environ)
""",
    )
    result = project.run("test_env.py", "--lm-repeats=2")
    assert 0 == result.ret, result.stdout.str()


CUT_OFF = """
import openai
from pytest_lmeval import eval_task

@eval_task("cut_off", data=[{"id": "again"}, {"id": "for_good"}])
def test_cut_off(row, lm):
    said = []
    with openai.OpenAI(api_key="unused", base_url=lm.base_url) as client:
        try:
            for event in client.responses.create(model="m", input=row["id"], stream=True):
                said.append(event.delta if event.type == "response.output_text.delta" else "")
        except openai.APIStatusError as error:
            assert 502 == error.status_code
    lm.score("right", "".join(said) == ("" if row["id"] == "for_good" else "whole"))
"""


def test_a_stream_that_ends_in_the_middle_is_asked_for_again_and_never_half_an_answer(project: Project) -> None:
    installed("openai")
    project.write("test_cut_off.py", CUT_OFF)
    piece = b'data: {"choices": [{"index": 0, "delta": {"content": "wh"}}]}\n\n'
    end = b'data: {"choices": [{"index": 0, "delta": {"content": "ole"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    whole = replies(200, piece + end, {"Content-Type": "text/event-stream"})
    broken = replies(200, piece, {"Content-Type": "text/event-stream"})
    with serving([broken, whole, broken, cut_off(body=piece, chunked=True)]) as server:
        given = [f"--lm-adapter-arg={each}" for each in (f"base_url={server.base_url}", "stream=true")]
        result = project.run("test_cut_off.py", "--lm-adapter=openai:m", *given, "--lm-retries=1")
    assert (3, 4) == (result.ret, len(server.requests)), result.stdout.str()
    ledger = project.ledger()
    assert ("passed", "error") == (ledger["cut_off:again"]["status"], ledger["cut_off:for_good"]["status"])
