"""What can be known to be wrong before a model is asked is a usage error, and nothing is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.yaml_project import write_project

if TYPE_CHECKING:
    from tests.conftest import Project

MODEL = """
import picker

class Model(picker.Model):
    def generate(self, prompts):
        with open("asked.txt", "a") as file:
            file.write("asked\\n" * len(prompts))
        return super().generate(prompts)
"""
MODEL_OPTION = "--lm-adapter=noting:Model"


@pytest.fixture
def suite(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide declarative tasks, one of them with a parameter."""
    write_project(project.path)
    project.write("noting.py", MODEL)
    project.write("c.yaml", "which: last\n")
    monkeypatch.chdir(project.path)
    return project


@pytest.mark.parametrize("workers", [[], ["-n2"]])
@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ("which: [", "c.yaml:2:1: expected*"),
        ("which", "c.yaml: expected a mapping of parameters to values*"),
        ("{which: last, language: en}", "--lm-config=c.yaml: no task has the parameter 'language'; they have which"),
        (
            "{which: last, tasks: {the-choise: {which: last}}}",
            "--lm-config=c.yaml: no task has the key 'the-choise'; did you mean 'the-choice'?",
        ),
    ],
)
def test_values_that_cannot_be_used(suite: Project, config: str, fault: str, workers: list[str]) -> None:
    suite.write("c.yaml", f"{config}\n")
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml", *workers)
    assert 4 == result.ret
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    result.stderr.fnmatch_lines([f"*ERROR: *{fault}"])
    assert not (suite.path / "asked.txt").exists()


def test_a_value_may_be_for_a_task_of_a_file_that_is_not_named(suite: Project) -> None:
    suite.write("c.yaml", "{which: last, language: en}\n")
    assert 0 == suite.run_pytest("tasks/choice.yaml", MODEL_OPTION, "--lm-config=c.yaml").ret
    assert 0 == suite.run_pytest("tasks/choice.yaml::0", MODEL_OPTION, "--lm-config=c.yaml").ret


@pytest.mark.parametrize("judge", ["opanai:gpt", "nobody", "no_such_module:Judge"])
def test_a_judge_that_there_is_not(suite: Project, judge: str) -> None:
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml", f"--lm-judge={judge}")
    assert 4 == result.ret
    assert not (suite.path / "asked.txt").exists()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_tasks_are_selected_by_their_key(suite: Project) -> None:
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml", "-k", "the-choice")
    result.assert_outcomes(passed=2, deselected=3)


def test_a_link_to_a_folder_that_it_is_in_multiplies_no_task(suite: Project) -> None:
    (suite.path / "tasks/again").symlink_to("..")
    (suite.path / "tasks/self").symlink_to(".")
    result = suite.run_pytest("tasks", MODEL_OPTION, "--lm-config=c.yaml")
    result.assert_outcomes(passed=5)
    assert 3 == len(suite.board()["tasks"])
