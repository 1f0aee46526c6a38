"""The ids of calls that an application gets: each once in an example, and the same wherever the answer is from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import BOTH, Project
from tests.needs import installed


def outputs(project: Project, folder: str = "reports") -> dict[str, Any]:
    """Return what each example says of the calls that it got."""
    return {key: record["details"]["output"] for key, record in project.examples(folder).items()}


@pytest.mark.parametrize("processes", BOTH)
def test_ids_of_calls_are_the_same_live_resumed_replayed_and_cached(project: Project, processes: str) -> None:
    project.copy("eval_agent")
    project.usual = (*project.usual, "--lm-include-per-example")
    live = project.run("test_agent.py", "--lm-report-dir=live", "--lm-cache=cache", processes)
    assert 0 == live.ret, live.stdout.str()
    expected = outputs(project, "live")
    ids = [id for talks in expected.values() for talk in talks for id in talk]
    assert 2 * 4 * 8 == len(ids)
    assert all(len(id) == 9 and id.isalnum() for id in ids)
    project.write("asked.txt", "")
    cached = project.run("test_agent.py", "--lm-report-dir=cached", "--lm-cache=cache", processes)
    replayed = project.run("test_agent.py", "--lm-report-dir=again", "--lm-adapter=replay:live/ledger.jsonl", processes)
    assert (0, 0, "") == (cached.ret, replayed.ret, (project.path / "asked.txt").read_text()), replayed.stdout.str()
    assert expected == outputs(project, "cached") == outputs(project, "again")
    if processes == "-n0":
        project.write("kill.txt", "")
        assert project.run("test_agent.py").ret not in (0, 3)
        (project.path / "kill.txt").unlink()
        project.write("resumed.txt", "")
        resumed = project.run("test_agent.py", "--lm-resume")
        assert 0 == resumed.ret, resumed.stdout.str()
        assert expected == outputs(project)
        # What was asked by the process that was killed may have been asked without an answer.
        assert 48 <= len((project.path / "asked.txt").read_text().split()) <= 48 + 10


SDK = """
import openai
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from pytest_lmeval import eval_task

CLIENT = openai.AsyncOpenAI(api_key="unused")

@function_tool
def find(q: int) -> str:
    return "found"

@function_tool
def refund(q: int) -> str:
    return "refunded"

AGENT = Agent(name="desk", instructions="Use the tools.", tools=[find, refund])

@eval_task("desk", data=[{"id": f"e{number}"} for number in range(4)])
async def test_desk(row, lm):
    model = OpenAIResponsesModel("gpt-4o", openai_client=lm.client(CLIENT))
    result = await Runner.run(AGENT, row["id"], run_config=RunConfig(model=model, tracing_disabled=True))
    lm.score("done", result.final_output == "done")
"""


@pytest.mark.slow
def test_an_sdk_that_refuses_an_id_that_was_there_before_runs_out_of_a_ledger(project: Project) -> None:
    installed("agents", "clients")
    installed("openai")
    project.copy("eval_agent", "model.py")
    project.write("test_desk.py", SDK)
    project.write("kill.txt", "")
    assert project.run("test_desk.py", "-Wignore").ret not in (0, 3)
    (project.path / "kill.txt").unlink()
    project.write("resumed.txt", "")
    again = ("--lm-report-dir=again", "--lm-adapter=replay:reports/ledger.jsonl")
    for arguments in (("--lm-resume",), again):
        result = project.run("test_desk.py", "-Wignore", *arguments)
        assert 0 == result.ret, result.stdout.str()
