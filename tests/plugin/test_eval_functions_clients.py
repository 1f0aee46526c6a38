"""The endpoint for an application's own client, with the real client of OpenAI and plain HTTP."""

from __future__ import annotations

import pytest

from tests.conftest import BOTH, Project
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
        if request.tools:
            return Completion("", tool_calls=(ToolCall("call00001", request.tools[0]["name"], '{"q": 1}'),))
        return Completion(f"{request.id}: {request.text}", prompt_tokens=3, completion_tokens=2)
"""
CLIENTS = """
import asyncio, json, urllib.error, urllib.request
import openai
import pytest
from pytest_lmeval import eval_task

ROWS = [{"id": f"e{n}"} for n in range(20)]
SHARED = {}

def client(lm):
    loop = asyncio.get_running_loop()
    if loop not in SHARED:
        SHARED[loop] = openai.AsyncOpenAI(api_key="unused", base_url="http://127.0.0.1:1/v1", max_retries=0)
    return SHARED[loop]

def said(text):
    return {"model": "any", "messages": [{"role": "user", "content": text}]}

@eval_task("url", data=ROWS)
async def test_url(row, lm):
    own = client(lm).with_options(base_url=lm.base_url)
    answers = await asyncio.gather(*[own.chat.completions.create(**said(f"q{n}")) for n in range(3)])
    assert [f"{row['id']}: q{n}" for n in range(3)] == [each.choices[0].message.content for each in answers]
    assert 5 == answers[0].usage.total_tokens
    assert 3 == len(lm.trace)

@eval_task("token", data=ROWS)
async def test_token(row, lm, lm_base_url):
    own = client(lm).with_options(base_url=lm_base_url, api_key=lm.token)
    answer = await own.chat.completions.create(**said("hi"))
    assert f"{row['id']}: hi" == answer.choices[0].message.content

@eval_task("stream", data=ROWS[:3])
async def test_stream(row, lm):
    stream = await client(lm).with_options(base_url=lm.base_url).chat.completions.create(
        **said("a longer question"), stream=True, stream_options={"include_usage": True})
    text, usage = "", None
    async for chunk in stream:
        text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        usage = chunk.usage or usage
    assert f"{row['id']}: a longer question" == text
    assert 5 == usage.total_tokens

@eval_task("tools")
async def test_tools(lm):
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    answer = await client(lm).with_options(base_url=lm.base_url).chat.completions.create(**said("x"), tools=[tool])
    (call,) = answer.choices[0].message.tool_calls
    assert ("search", '{"q": 1}') == (call.function.name, call.function.arguments)
    assert "tool_calls" == answer.choices[0].finish_reason

@eval_task("blocking", data=ROWS[:4], threads=True)
def test_blocking(row, lm):
    own = openai.OpenAI(api_key="unused", base_url=lm.base_url)
    answer = own.chat.completions.create(**said("hi"))
    assert f"{row['id']}: hi" == answer.choices[0].message.content

KEPT = []

@eval_task("wrong", data=[{"id": "a"}, {"id": "b"}])
async def test_wrong(row, lm, lm_base_url):
    KEPT.append(lm.base_url)
    with pytest.raises(openai.APIStatusError) as caught:
        await client(lm).with_options(base_url=lm_base_url).chat.completions.create(**said("x"))
    assert 421 == caught.value.status_code
    assert "base_url=lm.base_url" in str(caught.value)
    if row["id"] == "b" and len(KEPT) == 2:  # in the process that ran the other one, too
        await asyncio.sleep(0.3)
        with pytest.raises(openai.APIStatusError) as caught:
            await client(lm).with_options(base_url=KEPT[0]).chat.completions.create(**said("x"))
        assert 410 == caught.value.status_code
        with pytest.raises(openai.BadRequestError):
            await client(lm).with_options(base_url=lm.base_url).chat.completions.create(model="m", messages=[])
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


# Requests do not leave the process of their example.
@pytest.mark.parametrize("processes", BOTH)
def test_every_request_of_a_client_or_an_agent_belongs_to_its_own_example(project: Project, processes: str) -> None:
    installed("openai")
    installed("pydantic_ai")
    project.write("model.py", MODEL)
    project.write("tests/test_clients.py", CLIENTS)
    project.write("tests/test_agent.py", AGENT)
    result = project.run("tests", processes, "-Wignore")
    assert 0 == result.ret, result.stdout.str()
    counts = project.board()["counts"]
    assert 50 + 6 == counts["scored"] == counts["collected"]
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
