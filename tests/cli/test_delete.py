"""``lmeval delete``: the file of one task, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Lmeval
from tests.cli.yaml_project import TASK

pytestmark = pytest.mark.usefixtures("yaml_project")


def test_a_task_is_deleted_by_its_key(lmeval: Lmeval) -> None:
    assert (0, "deleted tasks/first.yaml\n", "") == lmeval("delete", "the-first")
    assert ["choice.yaml", "options.yaml", "plain.jsonl"] == sorted(path.name for path in Path("tasks").iterdir())
    status, _, err = lmeval("delete", "the-first")
    assert (2, True) == (status, "unknown task 'the-first'" in err)


def test_what_it_included_stays_and_is_named(lmeval: Lmeval) -> None:
    Path("tasks/first.yaml").write_text(TASK + "  - {type: python, compute_scores_snippet: !include s.py}\n")
    Path("tasks/s.py").write_text("x = 1\n")
    assert "deleted tasks/first.yaml\nkept: s.py\n" == lmeval("delete", "the-first")[1]
    assert Path("tasks/s.py").exists()


def test_tasks_of_other_kinds_are_not_deleted(lmeval: Lmeval) -> None:
    assert 2 == lmeval("delete", "plain")[0]
    assert Path("tasks/plain.jsonl").exists()
