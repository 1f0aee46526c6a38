"""A project that ``lmeval init --model hf:PATH`` began is green with that model, and red with a worse one."""

from __future__ import annotations

import csv
import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.cli import main
from pytest_lmeval.formats.yaml.parse import parse_yaml

if TYPE_CHECKING:
    from tests.conftest import Project

QUESTIONS = [f"What comes after {number}?" for number in range(1, 13)]


def _write_rows(project: Project, answers: list[str]) -> None:
    with (project.path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "question", "answer"])
        writer.writerows([f"q{number}", *row] for number, row in enumerate(zip(QUESTIONS, answers, strict=True)))


def _command(project: Project) -> list[str]:
    """Return what the workflow tests with."""
    jobs = parse_yaml((project.path / ".github/workflows/evals.yml").read_bytes())["jobs"]
    commands = [shlex.split(step["run"]) for step in jobs["evals"]["steps"] if "run" in step]
    return next(command[1:] for command in commands if command[0] == "pytest")


def test_a_local_model_is_green_and_its_worse_successor_red(
    project: Project, chat_llama: Path, plain_gpt2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pytest.ini", "model.py"):
        (project.path / name).unlink()
    monkeypatch.chdir(project.path)
    shutil.copytree(chat_llama, project.path / "models/now")
    shutil.copytree(plain_gpt2, project.path / "models/next")
    _write_rows(project, ["a word"] * len(QUESTIONS))
    assert 0 == main(["init", "--model=hf:models/now", "--from=rows.csv"])
    tested = _command(project)

    # What is right is what this model says: it was never taught.
    project.run_pytest(*tested[:-1], "--lm-gate=none")
    ledger = (project.path / "reports/ledger.jsonl").read_text().splitlines()
    results = [json.loads(line) for line in ledger if '"outputs"' in line]
    said = {result["id"]: result["predictions"][0] for result in results}
    _write_rows(project, [said[f"q{number}"] for number in range(len(QUESTIONS))])

    assert 0 == project.run_pytest(*tested, "--lm-update-baseline").ret
    assert 0 == project.run_pytest(*tested).ret
    text = (project.path / "pyproject.toml").read_text()
    project.write("pyproject.toml", text.replace("models/now", "models/next"))
    assert 1 == project.run_pytest(*tested).ret
    assert "regression" == project.board()["gate"]["verdict"]
