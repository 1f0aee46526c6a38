"""A run that is interrupted or killed leaves what it has: a partial board, or a ledger and no board."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PATIENCE_S

if TYPE_CHECKING:
    from tests.conftest import Project

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


def start_slow(project: Project, *options: str) -> subprocess.Popen[str]:
    """Start a run and return it once its model is busy with a later batch."""
    project.write("slow.py", SLOW)
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", f"w{n}") for n in range(12)])
    arguments = ["-p", "no:randomly", "-p", "no:hypothesispytest", "--lm-adapter=slow:Slow", "--lm-batch-size=2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments, *options],
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE_S
    while len(project.calls()) < 2 or finished(project) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    return process


def finished(project: Project) -> int:
    """Return how many results the ledger holds."""
    path = project.path / "reports/ledger.jsonl"
    return path.read_bytes().count(b'"hash":') if path.exists() else 0


def stop(process: subprocess.Popen[str], number: int, *, group: bool) -> str:
    try:
        (os.killpg if group else os.kill)(process.pid, number)
        return process.communicate(timeout=PATIENCE_S)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.mark.parametrize(("options", "group"), [([], False), (["-n2"], False), (["-n2"], True)])
def test_ctrl_c_leaves_a_partial_board_and_exit_code_2(project: Project, options: list[str], group: bool) -> None:
    process = start_slow(project, *options)
    output = stop(process, signal.SIGINT, group=group)
    assert 2 == process.returncode, output
    board = project.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert 2 == board["counts"]["scored"]
    assert 10 == board["counts"]["missing"]
    assert "tasks/t.jsonl::e11" in output


def test_a_killed_run_leaves_its_results_in_the_ledger_and_no_board_of_an_older_run(project: Project) -> None:
    for name in ("leaderboard.json", "leaderboard.md", "report.html", "core.csv", ".leaderboard.json.torn", "mine.txt"):
        project.write(f"reports/{name}", "old")
    stop(start_slow(project), signal.SIGKILL, group=True)
    left = sorted(path.name for path in project.path.joinpath("reports").iterdir())
    assert [".lock", "ledger.jsonl", "mine.txt"] == left
    header, *results = (project.path / "reports/ledger.jsonl").read_text("ascii").splitlines()
    assert "header" in json.loads(header)
    assert ["e0", "e1"] == [json.loads(line)["id"] for line in results]
    project.run()
    assert project.board()["complete"]
    (aside,) = project.path.glob("reports/ledger-*.jsonl")
    assert header == aside.read_text("ascii").splitlines()[0]


def test_a_report_folder_in_use_by_another_run_is_a_usage_error(project: Project) -> None:
    process = start_slow(project)
    try:
        result = project.run()
        assert 4 == result.ret
        (result.stderr if result.errlines else result.stdout).fnmatch_lines(["*reports*in use by another run*"])
    finally:
        stop(process, signal.SIGKILL, group=True)
