"""The starter is written whole or not at all, and runs green at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval import validate_file
from pytest_lmeval.errors import UsageError
from pytest_lmeval.starter import write_starter

if TYPE_CHECKING:
    from tests.conftest import Project

FILES = [".github/workflows/evals.yml", "tasks/arithmetic.jsonl", "tasks/support.jsonl"]


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def test_a_new_folder_gets_two_tasks_and_a_workflow(tmp_path: Path) -> None:
    folder = tmp_path / "new/project"
    assert [folder / name for name in FILES] == write_starter(folder)
    assert FILES == _files(folder)


def test_one_task_is_compact_and_one_strict_with_worked_examples(tmp_path: Path) -> None:
    _, compact, strict = write_starter(tmp_path)
    examples, errors = validate_file(compact)
    assert [] == errors
    assert {""} == {example.category for example in examples}
    examples, errors = validate_file(strict)
    assert [] == errors
    assert all(example.category and example.few_shot_examples for example in examples)


def test_the_workflow_runs_green_at_once(project: Project) -> None:
    workflow = write_starter(project.path)[0].read_text("utf-8")
    commands = [line.partition("run: ")[2] for line in workflow.splitlines() if "run: " in line]
    assert ["pip install pytest-lmeval", "pytest tasks/ --lm-adapter=toy"] == commands
    project.run_pytest(*shlex.split(commands[1])[1:]).assert_outcomes(passed=10)
    board = project.board()
    assert (True, 1.0) == (board["complete"], board["overall_score"])
    assert "path: reports/" in workflow
    assert (project.path / "reports/leaderboard.json").exists()


def test_nothing_is_written_where_a_file_is_in_the_way_and_all_of_them_are_named(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / FILES[1]).write_text("mine")
    (tmp_path / FILES[2]).symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError) as caught:
        write_starter(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / FILES[1]}, {tmp_path / FILES[2]}: in the way")
    assert FILES[1:] == _files(tmp_path)
    assert "mine" == (tmp_path / FILES[1]).read_text()


@pytest.mark.parametrize("name", ["tasks", ".github"])
def test_nothing_is_written_where_a_folder_would_have_to_replace_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError) as caught:
        write_starter(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}: in the way")
    assert [name] == _files(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"xxx.*: cannot be written: "):
        write_starter(tmp_path / ("x" * 300))


def test_other_files_of_a_project_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/mine.jsonl").write_text("mine")
    write_starter(tmp_path)
    assert sorted([*FILES, "tasks/mine.jsonl"]) == _files(tmp_path)
