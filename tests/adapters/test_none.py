"""The adapter ``none``: functions that only score need no model; what asks one is told how to give one."""

from __future__ import annotations

import pytest

from pytest_lmeval import load_tasks, run_leaderboard
from pytest_lmeval.adapters.none import NoAdapter, make
from pytest_lmeval.errors import UsageError
from tests.conftest import Project

FUNCTIONS = """
from pytest_lmeval import eval_task

@eval_task("sums")
def test_sum(lm):
    lm.score("right", 1 + 1 == 2)

@eval_task("asks")
def test_asks(lm):
    lm.ask("2 + 2?")
"""


def test_it_takes_no_argument() -> None:
    with pytest.raises(UsageError, match="adapter 'none' takes no argument, got 'gpt'"):
        make("gpt")


def test_functions_that_only_score_pass_and_those_that_ask_are_errors(project: Project) -> None:
    project.write("test_sums.py", FUNCTIONS)
    result = project.run_pytest("--lm-adapter=none", "--lm-include-per-example")

    assert 3 == result.ret
    examples = project.examples()
    assert "passed" == examples["sums:test_sum"]["status"]
    assert "error" == examples["asks:test_asks"]["status"]
    result.stdout.fnmatch_lines(["*has no model; name one with --lm-adapter=SPEC*"])


def test_examples_of_task_files_are_refused_before_anything_runs(project: Project) -> None:
    project.small_tasks()
    project.write("test_sums.py", FUNCTIONS)
    result = project.run_pytest("--lm-adapter=none", ".")

    assert 4 == result.ret
    refusal = "adapter none asks no model, and these examples need one: arithmetic (3), words (2);"
    assert refusal in result.stdout.str() + result.stderr.str()
    assert not (project.path / "reports/leaderboard.json").exists()


def test_the_library_refuses_it(project: Project) -> None:
    project.small_tasks()
    with pytest.raises(UsageError, match=r"adapter none asks no model, and these examples need one: arithmetic \(3\)"):
        run_leaderboard(load_tasks(project.path / "tasks"), NoAdapter())
