"""``lmeval tasks``: what there is, and what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Lmeval

pytestmark = pytest.mark.usefixtures("yaml_project")


def test_the_tasks_of_the_project_are_listed(lmeval: Lmeval) -> None:
    status, out, _ = lmeval("tasks")
    assert 0 == status
    assert [
        "name    key         metric         examples  parameters  path",
        "choice  the-choice                 ?         which       tasks/choice.yaml",
        "first   the-first   string_equals  2                     tasks/first.yaml",
        "plain               exact_match    1                     tasks/plain.jsonl",
    ] == out.splitlines()


def test_machines_get_the_same(lmeval: Lmeval) -> None:
    status, out, _ = lmeval("tasks", "--format=json", "tasks/first.yaml")
    assert 0 == status
    assert {
        "tasks": [
            {
                "name": "first",
                "metric": "string_equals",
                "examples": 2,
                "key": "the-first",
                "parameters": [],
                "path": "tasks/first.yaml",
            }
        ],
        "not_tasks": [],
    } == json.loads(out)


def test_a_file_that_is_wrong_is_told_of_and_none_at_all_is_a_finding(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "broken.yaml").write_text("definition: [")
    status, out, _ = lmeval("tasks")
    assert 1 == status
    assert "tasks/broken.yaml:1: bad_yaml _document: " in out
    (tmp_path / "empty").mkdir()
    assert (1, "no task found\n") == lmeval("tasks", "empty")[:2]


def test_files_that_are_no_tasks_are_listed_apart(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "tasks" / "other.yaml").write_text("definitoin: {}")
    status, out, _ = lmeval("tasks")
    reason = "no key definition, icl_tasks, mixture or harness; did you mean 'definition'?"
    assert (0, f"not a task: tasks/other.yaml ({reason})") == (status, out.splitlines()[-1])
    machine = json.loads(lmeval("tasks", "--format=json")[1])
    assert [{"path": "tasks/other.yaml", "reason": reason}] == machine["not_tasks"]


def test_the_folders_of_the_ini_file_are_looked_into(lmeval: Lmeval, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nlm_task_paths = other\n")
    (tmp_path / "tasks").rename(tmp_path / "other")
    assert "other/first.yaml" in lmeval("tasks")[1]
