"""A run that lost an example fails, says which, and has no overall score, however it lost it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

# What the model does when it meets the word "boom".
ENDING = """
import os
from model import Model
import pytest

class Ending(Model):
    def __init__(self, how):
        self.how = how

    def answer(self, prompt):
        if "boom" not in prompt:
            return super().answer(prompt)
        if self.how == "os._exit":
            os._exit(0)
        if self.how == "pytest.exit":
            pytest.exit("enough", returncode=0)
        if self.how == "KeyboardInterrupt":
            raise KeyboardInterrupt
        raise AssertionError(self.how)
"""


@pytest.fixture
def ending(project: Project) -> Project:
    """Provide twelve examples in batches of four; the second batch ends badly."""
    project.write("ending.py", ENDING)
    words = ["boom" if number == 5 else f"w{number}" for number in range(12)]
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", word) for number, word in enumerate(words)])
    return project


def end(project: Project, how: str, *options: str) -> pytest.RunResult:
    return project.run_pytest(
        "--lm-adapter=ending:Ending", f"--lm-adapter-arg=how='{how}'", "--lm-batch-size=4", *options
    )


def lost(project: Project, result: pytest.RunResult) -> list[str]:
    """Return the lost examples after checking that terminal, counts and gate agree on them."""
    board = project.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert "incomplete" == board["gate"]["verdict"]
    named = [reason.rpartition("::")[2] for reason in board["gate"]["reasons"] if "::" in reason]
    assert len(named) == board["counts"]["missing"]
    for name in named[:10]:
        result.stdout.fnmatch_lines([f"*tasks/t.jsonl::{name}*"])
    result.stdout.fnmatch_lines(["*INCOMPLETE*"])
    return named


@pytest.mark.command_line
def test_an_adapter_that_ends_the_process_does_not_end_the_run_green(ending: Project) -> None:
    result = end(ending, "os._exit")
    assert 3 == result.ret
    # The batch that ended it was asked ahead: of the batch before it some may still have been unscored.
    assert {f"e{number}" for number in range(4, 12)} <= set(lost(ending, result))


def test_a_board_agrees_with_itself_where_the_process_ends_while_examples_are_scored(ending: Project) -> None:
    words = ["boom" if number == 150 else f"w{number}" for number in range(200)]
    ending.task("tasks/t.jsonl", *[ending.record(f"e{number}", word) for number, word in enumerate(words)])
    result = end(ending, "os._exit", "--lm-batch-size=100", "--lm-include-per-example")
    assert 3 == result.ret
    missing = set(lost(ending, result))
    assert {f"e{number}" for number in range(100, 200)} <= missing
    assert not missing & {name.removeprefix("t:") for name in ending.examples()}
    assert 200 == ending.board()["counts"]["collected"]


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_an_adapter_that_stops_pytest_leaves_the_run_incomplete(ending: Project, processes: str) -> None:
    result = end(ending, "pytest.exit", processes)
    assert 3 == result.ret
    assert {f"e{number}" for number in range(4, 8)} <= set(lost(ending, result))


def test_an_interrupt_raised_inside_one_process_is_an_interrupt(ending: Project) -> None:
    result = end(ending, "KeyboardInterrupt")
    assert 2 == result.ret
    assert [f"e{number}" for number in range(4, 12)] == lost(ending, result)


def test_an_interrupt_raised_inside_a_worker_leaves_the_run_incomplete(ending: Project) -> None:
    result = end(ending, "KeyboardInterrupt", "-n2")
    assert result.ret in (2, 3)
    assert "e4" in lost(ending, result)


HOOK = """
import pytest

def {hook}:
    if "e5" in str({thing}):
        pytest.exit("enough", returncode=0)
"""


@pytest.mark.parametrize(
    ("hook", "thing", "processes"),
    [
        ("pytest_runtest_setup(item)", "item.name", "-n0"),
        ("pytest_runtest_logreport(report)", "report.nodeid", "-n0"),
        ("pytest_runtest_logreport(report)", "report.nodeid", "-n2"),
    ],
)
def test_a_hook_that_stops_pytest_leaves_the_run_incomplete(
    ending: Project, hook: str, thing: str, processes: str
) -> None:
    ending.write("conftest.py", HOOK.format(hook=hook, thing=thing))
    result = ending.run(processes, "--lm-batch-size=4")
    assert 3 == result.ret
    assert lost(ending, result)


@pytest.mark.parametrize(("stop", "processes"), [("-x", "-n0"), ("--sw", "-n0"), ("-x", "-n2")])
def test_a_run_that_was_told_to_stop_is_incomplete_and_failed_as_any_run(
    project: Project, stop: str, processes: str
) -> None:
    records = [project.record(f"e{n}", "x", target="y" if n == 1 else "x") for n in range(60)]
    project.task("tasks/t.jsonl", *records)
    result = project.run(stop, processes, "--lm-batch-size=2")
    assert 1 == result.ret
    board = project.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert board["counts"]["missing"] > 0
    assert 60 == board["counts"]["collected"]


# Before anything is collected, of a run whose adapter is given by a fixture

OVERRIDE = """
import os, sys
import pytest
from model import Model

@pytest.fixture(scope="session")
def lm_adapter():
    return Model()

def pytest_collection():
    {end}
"""
ENDS = ["os._exit(0)", "pytest.exit('enough', 0)", "sys.exit(0)"]


@pytest.mark.parametrize("arguments", ["tasks", "tests tasks/t.jsonl", "tests tasks", "-o lm_task_paths=tasks"])
def test_a_run_that_ends_before_it_collects_is_not_green(project: Project, arguments: str) -> None:
    project.write("tests/test_plain.py", "def test_plain(): pass\n")
    project.task("tasks/t.jsonl", project.record("a", "x"))
    for end in ENDS:
        project.write("conftest.py", OVERRIDE.replace("{end}", end))
        assert 3 == project.run_pytest(*arguments.split()).ret, end
    project.write("conftest.py", OVERRIDE.replace("{end}", "pass"))
    assert 0 == project.run_pytest(*arguments.split()).ret


@pytest.mark.parametrize("arguments", ["", "tests", "tasks", "--collect-only tasks"])
def test_a_run_without_tasks_may_end_as_it_likes(project: Project, arguments: str) -> None:
    project.write("conftest.py", OVERRIDE.replace("{end}", ENDS[0]))
    project.write("tests/test_plain.py", "def test_plain(): pass\n")
    project.write("tasks/test_plain.py", "def test_plain(): pass\n")
    assert 0 == project.run_pytest(*arguments.split()).ret
