"""A whole run: pytest, task files, the model in a folder, the board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .tiny_model import FACTS

if TYPE_CHECKING:
    from tests.conftest import Project

RIGHT = [{"id": f"fact-{n}", "prompt": q, "targets": [a], "metric": "exact_match"} for n, (q, a) in enumerate(FACTS)]
WRONG = [{"id": "wrong", "prompt": FACTS[0][0], "targets": ["Rome"], "metric": "exact_match"}]


@pytest.fixture
def facts(project: Project, chat_llama: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide a project with two tasks and the model in a folder beside them."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    project.task("tasks/facts.jsonl", *RIGHT)
    project.task("tasks/wrong.jsonl", *WRONG)
    (project.path / "model").symlink_to(chat_llama)
    return project


@pytest.mark.slow
def test_a_run_in_one_process_and_one_in_two_have_the_same_digest(facts: Project) -> None:
    command = ["tasks/", "--lm-adapter=hf:model", "--lm-adapter-arg=max_new_tokens=20", "--lm-include-per-example"]
    serial = facts.run_pytest(*command, timeout=120)
    serial.assert_outcomes(passed=len(RIGHT), failed=1)
    board = facts.board()
    assert {"facts": 1.0, "wrong": 0.0} == {row["task"]: row["score"] for row in board["tasks"]}
    assert FACTS[7][1] == facts.examples()["facts:fact-7"]["output"]

    parallel = facts.run_pytest(*command, "-n2", timeout=120)
    parallel.assert_outcomes(passed=len(RIGHT), failed=1)
    assert board["digest"] == facts.board()["digest"]


def test_a_model_that_cannot_be_loaded_ends_the_run_with_its_name(facts: Project) -> None:
    (facts.path / "empty").mkdir()
    result = facts.run_pytest("tasks/", "--lm-adapter=hf:empty", timeout=120)
    assert result.ret != 0
    assert "adapter 'hf': empty holds no config.json" in result.stdout.str() + result.stderr.str()
