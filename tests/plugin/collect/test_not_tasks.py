"""A file that lies where tasks do, and is none, does not vanish without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

MISSPELT = "not a task: tasks/x.yaml (no key definition, icl_tasks, mixture or harness; did you mean 'definition'?)"
PYTHON = "not a task: tasks/task_none.py (expected a BaseTask class with a NAME, a Task class, or a list TASKS)"


def _said(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if line.startswith(("not a task", "... and"))]


@pytest.mark.parametrize(("alone", "processes"), [(True, "-n0"), (False, "-n0"), (False, "-n2")])
def test_files_that_are_no_tasks_are_named_with_the_reason(project: Project, alone: bool, processes: str) -> None:
    project.write("tasks/x.yaml", "title: x\ndefinitoin: {}\n")
    project.write("tasks/task_none.py", "x = 1\n")
    project.write("tasks/rows.yaml", "key: rows\nfile_path: rows.csv\n")
    if not alone:
        project.task("tasks/fine.jsonl", project.record("a", "x"))
    result = project.run(processes)
    assert (5 if alone else 0, [PYTHON, MISSPELT]) == (result.ret, _said(result))


@pytest.mark.parametrize("name", ["tasks/x.yaml", "tasks/task_none.py"])
def test_a_file_that_is_named_and_holds_no_task_is_an_error(project: Project, name: str) -> None:
    project.write("tasks/x.yaml", "definitoin: {}\n")
    project.write("tasks/task_none.py", "x = 1\n")
    result = project.run(name)
    assert 2 == result.ret
    result.stdout.fnmatch_lines([f"{name}:1: missing_required _root: *no task in the file*expected*"])


def test_of_other_folders_only_what_looks_misspelt_is_said(project: Project) -> None:
    project.write("evals/foreign.yaml", "description: x\nfixtures: y\n")
    project.write("evals/x.yaml", "mixtur: []\n")
    assert [
        "not a task: evals/x.yaml (no key definition, icl_tasks, mixture or harness; did you mean 'mixture'?)"
    ] == _said(project.run("evals"))


def test_a_run_that_collects_no_task_files_says_nothing(project: Project) -> None:
    project.write("tasks/x.yaml", "definitoin: {}\n")
    project.write("test_plain.py", "def test_plain(): pass\n")
    assert [] == _said(project.run_pytest())


def test_of_many_files_the_first_are_named(project: Project) -> None:
    for number in range(23):
        project.write(f"tasks/{number:02}.yaml", "a: 1\n")
    said = _said(project.run())
    assert (21, "... and 3 more files that are not tasks") == (len(said), said[-1])


def test_an_empty_folder_has_no_test(project: Project) -> None:
    (project.path / "empty").mkdir()
    assert 5 == project.run("empty").ret


def test_the_data_of_an_eval_function_are_no_task_file(project: Project) -> None:
    project.write("tasks/tickets.jsonl", '{"text": "Where is it?"}\n')
    function = "@eval_task('support', data='tickets.jsonl')\ndef test_ticket(row, lm): assert row['text']\n"
    project.write("tasks/test_support.py", f"from pytest_lmeval import eval_task\n{function}")
    project.run("tasks").assert_outcomes(passed=1)
