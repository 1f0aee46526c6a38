"""Code that cancels all tasks of its loop, or stops the loop, ends the run with a reason: nobody waits for ever."""

from __future__ import annotations

import pytest

from tests.conftest import Project

FUNCTION = """
import asyncio
from pytest_lmeval import eval_task

@eval_task("c", data=[{"id": str(i), "i": i} for i in range(4)])
async def test_c(row, lm):
    if row["i"] == 2:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0.1)
    assert (await lm.ask("2+2?")).text
"""


@pytest.fixture
def sums(project: Project) -> Project:
    project.copy("cancelled_tasks", "m.py")
    records = [{"id": f"e{n}", "prompt": "2+2?", "targets": ["4"], "metric": "exact_match"} for n in range(8)]
    project.task("tasks/sums.jsonl", *records)
    return project


def test_an_application_that_cancels_all_tasks_makes_its_examples_errors(sums: Project) -> None:
    sums.write("test_c.py", FUNCTION)
    ran = sums.run_pytest("test_c.py", "--lm-adapter=m:Model")
    assert (3, 4) == (ran.ret, sum(sums.board()["counts"][name] for name in ("errors", "scored")))
    assert sums.board()["counts"]["errors"]
    ran.stdout.fnmatch_lines(["c: 3 could not be scored (error): cancelled before it began: *asyncio.all_tasks()*"])


def test_an_adapter_that_cancels_all_tasks_ends_the_run_and_says_so(sums: Project) -> None:
    ran = sums.run_pytest("tasks", "--lm-adapter=m:Cancels", "--lm-concurrency=2")
    assert 3 == ran.ret
    reason = "*stopped: the task that sends requests to Cancels was cancelled; check whether*asyncio.all_tasks()*"
    ran.stdout.fnmatch_lines([reason])
    assert [reason.strip("*")[:20]] == [each[:20] for each in sums.board()["interruptions"]]


@pytest.mark.parametrize("model", ["Stops", "Exits"])
def test_an_adapter_that_stops_its_loop_is_asked_on(sums: Project, model: str) -> None:
    ran = sums.run_pytest("tasks", f"--lm-adapter=m:{model}", "--lm-concurrency=2")
    assert (0, 8) == (ran.ret, sums.board()["counts"]["scored"])
