"""The built wheel, installed outside of the repository, is the whole product."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, text=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_module_data_file_and_the_type_marker(wheel: Path) -> None:
    packaged = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-files", "pytest_lmeval"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()

    assert "pytest_lmeval/py.typed" in packaged
    assert set() == set(tracked) - packaged


def test_the_installed_wheel_runs_a_starter_outside_of_the_repository(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    project = tmp_path / "project"

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *command], cwd=project, env=environment, capture_output=True, text=True, check=False
        )

    project.mkdir()
    origin = run("pytest", "--version", "--version")
    started = run("pytest_lmeval.cli", "init")
    evaluated = run("pytest", "tasks", "--lm-adapter=toy", "-p", "no:randomly")

    assert str(site) in origin.stdout + origin.stderr
    assert (0, "") == (started.returncode, started.stderr)
    assert evaluated.returncode == 0, evaluated.stdout
    assert "overall" in evaluated.stdout
    assert (project / "reports" / "leaderboard.json").exists()
