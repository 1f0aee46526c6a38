"""Reports are written whole or not at all, and a run whose reports are not written has failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import NEEDLESS

if TYPE_CHECKING:
    from tests.conftest import Project

LIMITED = """
import resource, runpy, signal, sys

limit = int(sys.argv.pop(1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
runpy.run_module("pytest", run_name="__main__")
"""


def run_limited(project: Project, limit: int) -> subprocess.CompletedProcess[str]:
    """Run the tasks in a process that may write files of ``limit`` bytes at most."""
    arguments = [*[f"-pno:{name}" for name in (*NEEDLESS, "cacheprovider")], "--lm-adapter=model:Model"]
    command = [sys.executable, "-c", LIMITED, str(limit), *arguments]
    # Python would keep as much of a compiled module as the limit allows, for every later process to fail at.
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=project.path, env=variables, capture_output=True, text=True, timeout=120)


@pytest.mark.again
def test_a_full_disk_leaves_no_board_makes_the_run_incomplete_and_shows_the_scores(project: Project) -> None:
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", "x") for n in range(8)])
    project.run()
    done = run_limited(project, 700)
    assert 3 == done.returncode, done.stdout
    assert not (project.path / "reports/leaderboard.json").exists()
    assert "1.0000" in done.stdout
    assert "8 passed" in done.stdout
    assert "File too large" in done.stdout
    assert not [path for path in Path(project.path, "reports").iterdir() if "leaderboard.json." in path.name]


def test_a_run_whose_board_cannot_be_written_is_incomplete(project: Project) -> None:
    project.small_tasks()
    (project.path / "reports/leaderboard.json").mkdir(parents=True)
    result = project.run("-k", "words")
    assert 3 == result.ret
    result.stdout.fnmatch_lines(["words *1.0000*", "NOT WRITTEN: *leaderboard.json*"])
