"""A run that is interrupted or killed leaves what it has: a partial board, or a ledger and no board."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project, Started

SLOW = """
import time
from model import Model

class Slow(Model):
    def generate(self, prompts):
        answers = super().generate(prompts)
        if prompts[0] != "say: w0":
            time.sleep(600)
        return answers
"""


def start_slow(project: Project, *options: str) -> Started:
    """Start a run and return it once its model is busy with a later batch."""
    project.write("slow.py", SLOW)
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}") for n in range(12)])
    started = project.start("--lm-adapter=slow:Slow", "--lm-batch-size=2", *options)
    started.wait_for(lambda: len(project.calls()) >= 2 and finished(project) >= 2)
    return started


def finished(project: Project) -> int:
    """Return how many results the ledger holds."""
    path = project.path / "reports/ledger.jsonl"
    return path.read_bytes().count(b'"hash":') if path.exists() else 0


@pytest.mark.parametrize(("options", "group"), [([], False), (["-n2"], True)])
def test_ctrl_c_leaves_a_partial_board_and_exit_code_2(project: Project, options: list[str], group: bool) -> None:
    code, output = start_slow(project, *options).stop(signal.SIGINT, group=group)
    assert 2 == code, output
    board = project.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert 2 == board["counts"]["scored"]
    assert 10 == board["counts"]["missing"]
    assert "tasks/t.jsonl::e11" in output


CTRL_C_AT_A_REPORT = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.name == "e2" and call.when == "{when}":
        raise KeyboardInterrupt
    return report
"""
OLD_WRAPPER = """
import pytest

class Old:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        outcome = yield
        outcome.get_result()

def pytest_configure(config):
    config.pluginmanager.register(Old())
"""


@pytest.mark.parametrize(
    ("when", "conftest", "processes"),
    [
        ("setup", "", "-n0"),
        ("call", "", "-n0"),
        ("call", OLD_WRAPPER, "-n0"),
        ("call", OLD_WRAPPER, "-n2"),
        ("teardown", "", "-n0"),
    ],
)
def test_ctrl_c_while_a_report_is_built_is_ctrl_c(project: Project, when: str, conftest: str, processes: str) -> None:
    """Where warnings are errors, pluggy puts one in the place of what passes an old-style wrapper."""
    project.write("conftest.py", CTRL_C_AT_A_REPORT.replace("{when}", when) + conftest)
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}") for n in range(6)])
    result = project.run(processes, "--lm-batch-size=2")
    assert 2 == result.ret
    board = project.board()
    assert not board["complete"]
    assert 6 == board["counts"]["collected"]
    assert "no result: tasks/t.jsonl::e2" in result.stdout.str() or when == "teardown"
    assert board["counts"]["scored"] < 6


def test_a_killed_run_leaves_its_results_in_the_ledger_and_no_board_of_an_older_run(project: Project) -> None:
    for name in ("leaderboard.json", "leaderboard.md", "report.html", "core.csv", ".leaderboard.json.torn", "mine.txt"):
        project.write(f"reports/{name}", "old")
    start_slow(project).stop(signal.SIGKILL, group=True)
    left = sorted(path.name for path in project.path.joinpath("reports").iterdir())
    assert [".lock", "ledger.jsonl", "mine.txt", "previous"] == left
    header, *results = (project.path / "reports/ledger.jsonl").read_text("ascii").splitlines()
    assert "header" in json.loads(header)
    assert ["e0", "e1"] == [json.loads(line)["id"] for line in results]
    project.run()
    assert project.board()["complete"]
    (aside,) = project.path.glob("reports/ledger-*.jsonl")
    assert header == aside.read_text("ascii").splitlines()[0]
