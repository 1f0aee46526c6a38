"""The recipes of docs/many-machines.md: jobs that share no folder, and one merge."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NEEDLESS, Project

PAGE = Path(__file__).parents[2] / "docs" / "many-machines.md"


def recipe(name: str) -> str:
    found = re.search(rf"```bash {name}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("name", "variable", "first"),
    [
        ("slurm", "SLURM_ARRAY_TASK_ID", 1),
        pytest.param("kubernetes", "JOB_COMPLETION_INDEX", 0, marks=pytest.mark.again),
        pytest.param("matrix", "PART", 1, marks=pytest.mark.again),
    ],
)
def test_jobs_without_a_shared_folder_make_the_board_of_one_run(
    project: Project, tmp_path: Path, name: str, variable: str, first: int
) -> None:
    project.small_tasks()
    project.write("pyproject.toml", '[tool.lmeval.adapters.small]\nadapter = "model:Model"\n')
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}

    def run(script: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
        quiet = " ".join(f"-pno:{name}" for name in (*NEEDLESS, "asyncio"))
        environment = {**plain, "PATH": path, "PYTEST_ADDOPTS": quiet, **given}
        return subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)

    together = tmp_path / "together"
    shutil.copytree(project.path, together)
    for number in range(first, first + 3):
        folder = tmp_path / f"job{number}"
        shutil.copytree(project.path, folder)
        done = run(recipe(name), folder, **{variable: str(number)})
        assert 0 == done.returncode, done.stdout + done.stderr
        shutil.copytree(folder / "reports", together / "reports", dirs_exist_ok=True)
    merged = run(recipe("merge"), together)
    assert merged.returncode in (0, 1), merged.stdout + merged.stderr
    assert 0 == project.run_pytest("tasks", "--lm-adapter=small", "--lm-gate=none").ret
    one = project.board()["digest"]
    assert f'"digest": "{one}"' in (together / "merged" / "leaderboard.json").read_text("utf-8")
