"""``--lm-subject`` and ``--lm-num-fewshot`` are held against the tasks: what no task has is a usage error."""

from __future__ import annotations

import json

import pytest

from tests.conftest import BOTH, Project

QUIZ = """
from pytest_lmeval.tasks import BaseTask, ResponseType

class {name}(BaseTask[str]):
    NAME = "{name}"
    DATASET_PATH = "{name}.csv"
    SAMPLE_SPLIT = "test"
    METRICS = ["exact_match"]

    def _get_instruction_text(self, item):
        return "say: " + item["said"]

    def _get_ground_truth(self, item):
        return item["said"]
"""
TALKS = """
from pytest_lmeval.tasks import Task

class Talks(Task):
    eval_type = "generative"

    def num_examples(self):
        return 2

    def get_example(self, index):
        word = ["odd", "even"][index]
        return {"messages": [{"role": "user", "content": "say: " + word}, {"role": "assistant", "content": word}],
                "subject": word}

    def evaluate(self, conversation, response):
        return response == conversation["subject"]
"""
CORE = """
icl_tasks:
- {label: Where, dataset_uri: where.jsonl, icl_task_type: multiple_choice, num_fewshot: [0], has_categories: true}
"""


@pytest.fixture
def quizzes(project: Project) -> Project:
    """Provide two tasks with subjects, of which they share one, and one without."""
    for name, subjects in (("Near", ("north", "south")), ("Far", ("south", "west"))):
        project.write(f"tasks/task_{name}.py", QUIZ.format(name=name))
        project.write(f"tasks/{name}.csv", "said,subject\n" + "".join(f"{each},{each}\n" for each in subjects))
    project.task("tasks/plain.jsonl", project.record("a", "x"))
    return project


def _ids(project: Project) -> list[str]:
    return sorted(f"{row['task']}:{row['total']}" for row in project.board()["tasks"])


@pytest.mark.parametrize("names", [["nowhere"], ["north", "nowhere"], ["nowhere", "--collect-only"]])
def test_an_unknown_subject_is_a_usage_error_that_lists_those_of_all_tasks(quizzes: Project, names: list[str]) -> None:
    options = [name if name.startswith("--") else f"--lm-subject={name}" for name in names]
    result = quizzes.run(*options)
    assert 4 == result.ret
    wanted = "unknown subject in --lm-subject 'nowhere' (choices: north, south, west)"
    assert wanted in result.stdout.str() + result.stderr.str()
    assert [] == quizzes.calls()


@pytest.mark.parametrize("processes", BOTH)
def test_a_subject_is_known_to_one_task_at_least_and_others_are_told(quizzes: Project, processes: str) -> None:
    result = quizzes.run(processes, "--lm-subject=north")
    assert 0 == result.ret
    assert ["Near:1", "plain:1"] == _ids(quizzes)
    assert {
        "subjects": ["north"],
        "without_subjects": ["plain"],
        "tasks": {
            "Far": {"available": 2, "selected": 0},
            "Near": {"available": 2, "selected": 1},
            "plain": {"available": 1, "selected": 1},
        },
    } == quizzes.board()["selection"]
    line = "ran 2 of 5 examples of the task files; whole, without subjects: plain"
    result.stdout.fnmatch_lines([line])


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--lm-subject=north", "--lm-subject: no selected task has subjects"),
        ("--lm-num-fewshot=3", "--lm-num-fewshot=3: no selected task draws few-shots"),
    ],
)
def test_an_option_that_no_task_heeds_is_a_usage_error(quizzes: Project, option: str, problem: str) -> None:
    result = quizzes.run("tasks/plain.jsonl", option)
    assert 4 == result.ret
    assert problem in result.stdout.str() + result.stderr.str()
    assert [] == quizzes.calls()


def test_no_few_shots_are_what_a_task_without_has_anyway(quizzes: Project) -> None:
    assert 0 == quizzes.run("tasks/plain.jsonl", "--lm-num-fewshot=0").ret
    assert [["say: x"]] == quizzes.calls()
    assert [("plain", 1, 1)] == [(row["task"], row["correct"], row["total"]) for row in quizzes.board()["tasks"]]


def test_a_run_without_tasks_does_not_ask_for_subjects(project: Project) -> None:
    project.write("test_plain.py", "def test_plain(): pass\n")
    assert 0 == project.run("--lm-subject=north", "--lm-num-fewshot=2").ret


def test_conversations_core_tasks_and_mixtures_have_subjects(quizzes: Project) -> None:
    quizzes.write("tasks/task_talks.py", TALKS)
    quizzes.write("bundle/core.yaml", CORE)
    quizzes.write("bundle/baselines.csv", "Eval Task,Random baseline\nWhere,50\n")
    record = {"query": "where", "choices": ["here", "there"], "gold": 0, "category": "places"}
    quizzes.write("bundle/eval_data/where.jsonl", json.dumps(record) + "\n")
    quizzes.write("mixed/mixed.yaml", "mixture: [../tasks/task_Near.py, ../tasks/task_Far.py, ../tasks/plain.jsonl]\n")
    result = quizzes.run("tasks", "bundle/core.yaml", "--lm-subject=nowhere")
    assert 4 == result.ret
    assert "(choices: even, north, odd, places, south, west)" in result.stderr.str()
    result = quizzes.run("mixed/mixed.yaml", "--lm-subject=nowhere")
    assert "(choices: north, south, west)" in result.stderr.str()
    assert 0 == quizzes.run("mixed/mixed.yaml", "--lm-subject=west").ret
    assert {"available": 5, "selected": 2} == quizzes.board()["selection"]["tasks"]["mixed"]


def test_a_run_of_some_subjects_is_no_baseline_and_is_compared_with_its_own(quizzes: Project) -> None:
    baseline = ("--lm-baseline=base.json", "--lm-include-per-example")
    assert 0 == quizzes.run(*baseline, "--lm-update-baseline").ret
    before = (quizzes.path / "base.json").read_bytes()
    result = quizzes.run(*baseline, "--lm-subject=north")
    assert 0 == result.ret, result.stdout.str()
    assert "pass" == quizzes.board()["gate"]["verdict"]
    quizzes.run(*baseline, "--lm-update-baseline", "--lm-subject=north")
    assert before == (quizzes.path / "base.json").read_bytes()


@pytest.mark.parametrize("option", ["--lm-threshold", "--lm-min-score"])
def test_a_number_for_a_task_that_is_not_there_is_a_usage_error(quizzes: Project, option: str) -> None:
    result = quizzes.run(f"{option}=Nearr=0.5")
    assert 4 == result.ret
    assert f"in {option} 'Nearr'; did you mean 'Near'?" in result.stdout.str() + result.stderr.str()


def test_names_of_the_ini_file_that_the_run_has_no_task_for_are_told(quizzes: Project) -> None:
    ini = "lm_min_scores =\n    Nearr=0.5\n    overall=0.1\nlm_thresholds =\n    Far=0.5\n    f1=0.2\n    xyz=1\n"
    quizzes.write("pytest.ini", f"[pytest]\n{ini}")
    result = quizzes.run()
    assert 0 == result.ret
    assert [
        "ini lm_thresholds: this run has no task 'xyz'",
        "ini lm_min_scores: this run has no task 'Nearr'; did you mean 'Near'?",
    ] == [line for line in result.outlines if line.startswith("ini ")]


def test_a_mistake_in_the_project_s_table_is_one_line_also_where_that_names_the_adapter(quizzes: Project) -> None:
    (quizzes.path / "pytest.ini").unlink(missing_ok=True)
    table = "[tool.pytest.ini_options]\nlm_adapter = 'small'\n[tool.lmeval.adapter.small]\nadapter = 'toy'\n"
    quizzes.write("pyproject.toml", table)
    result = quizzes.run_pytest("tasks")
    assert 4 == result.ret
    said = result.stdout.str() + result.stderr.str()
    assert "unknown key in tool.lmeval 'adapter'; did you mean 'adapters'?" in said
    assert "registry_of" not in said
