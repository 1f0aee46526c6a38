"""Task files in Python through real runs: classes over a dataset, and lists of conversations."""

from __future__ import annotations

import json

import pytest

from tests import needs
from tests.conftest import Project
from tests.sources import source


@pytest.fixture
def everything(project: Project) -> Project:
    """Provide a project with task files of both kinds and their data beside them."""
    project.copy("python_tasks")
    return project


SCORES = {
    "Capitals Quiz": 0.5,
    "Diagnoses": 0.5,
    "Functions": 1.0,
    "PartlyRightPrograms": 0.5,
    "Programs": 0.0,
    "Questions": 1.0,
    "Word Problems": 1.0,
}


def test_every_kind_of_task_runs_alike_in_one_process_and_in_two(everything: Project) -> None:
    needs.installed("math_verify")
    arguments = ("tasks", "--lm-adapter=oracle:Oracle", "--lm-gate=tasks", "--lm-include-per-example")
    serial = everything.run_pytest(*arguments)
    board = everything.board()
    parallel = everything.run_pytest(*arguments, "-n2", "--lm-report-dir=two")

    serial.assert_outcomes(passed=6)
    assert [0, 0] == [serial.ret, parallel.ret]
    assert SCORES == {row["task"]: row["score"] for row in board["tasks"]}
    assert board["digest"] == everything.board("two")["digest"]
    rows = {row["task"]: row for row in board["tasks"]}
    assert {"africa": 1.0, "america": 0.0} == {
        name: s["score"] for name, s in rows["Capitals Quiz"]["subjects"].items()
    }
    assert {"endocrine", "general"} == set(rows["Diagnoses"]["subjects"])
    assert {"completion_accuracy": 1.0, "math_equal": 1.0, "rouge_1": 1.0} == rows["Word Problems"]["metrics"]
    assert [0.5, 1] == [rows["PartlyRightPrograms"]["threshold"], rows["PartlyRightPrograms"]["correct"]]
    assert "N'Djamena" == everything.examples()["Capitals Quiz:ex-0"]["prediction"]
    # A model without roles reads the cue on the line below the question.
    assert "You know your geography.\n\nName the capital of Chad.\nAnswer:" in everything.asked("prompts.txt")


def test_options_choose_few_shots_subjects_and_examples(everything: Project) -> None:
    options = ("--lm-num-fewshot=2", "--lm-subject=africa", "--lm-limit=1", "--lm-adapter=oracle:Full")
    result = everything.run_pytest("tasks/task_quizzes.py", "-k", "Capitals", *options)

    # Of the other tasks only the one whose items name no subject is left to deselect.
    result.assert_outcomes(passed=1, deselected=1)
    ((turns, stop, max_tokens),) = everything.asked("requests.txt")
    assert ["system", "user", "assistant", "user", "assistant", "user", "assistant"] == [role for role, _ in turns]
    assert ["Name the capital of Chad.\n", "Answer:"] == [content for _, content in turns[-2:]]
    # The class draws its own: none of the country's letter.
    assert {"Answer: Bamako", "Answer: Tehran"} == {turns[2][1], turns[4][1]}
    assert [[], None] == [stop, max_tokens]


def test_one_example_runs_by_its_node_id_and_its_file_once(everything: Project) -> None:
    with (everything.path / "tasks/task_talks.py").open("a") as talks:
        talks.write("\nwith open('imports.txt', 'a') as file: file.write('once ')\n")
    result = everything.run_pytest("tasks/task_talks.py::Diagnoses.ex-0", "--lm-adapter=oracle:Oracle")

    result.assert_outcomes(passed=1)
    assert "once " == (everything.path / "imports.txt").read_text()


def test_letters_are_chosen_by_probability_where_the_adapter_tells(everything: Project) -> None:
    arguments = ("tasks/task_talks.py", "-k", "Diagnoses", "--lm-gate=none", "--lm-include-per-example")
    result = everything.run_pytest(*arguments, "--lm-adapter=oracle:Probable")
    examples = everything.examples()

    assert ["A", "A"] == [examples[f"Diagnoses:ex-{number}"]["prediction"] for number in (0, 1)]
    assert [0.0, 1.0] == [examples[f"Diagnoses:ex-{number}"]["score"] for number in (0, 1)]
    assert {"A": -0.1, "B": -3.0} == examples["Diagnoses:ex-0"]["details"]["logprobs"]
    result.assert_outcomes(passed=1, deselected=2)
    assert not (everything.path / "prompts.txt").exists()


def test_bad_task_files_stop_the_run_before_the_model_is_asked(everything: Project) -> None:
    everything.write("tasks/task_broken.py", "import pytest_lmeval\nx = 1 / 0\n")
    everything.edit("tasks/task_quizzes.py", "item['country']", "item['land']")
    everything.write("tasks/task_twice.py", source("python_tasks/tasks/task_code.py"))
    everything.edit("tasks/task_twice.py", "class Functions", "class Again")
    result = everything.run_pytest("tasks", "--lm-adapter=oracle:Oracle")

    assert 2 == result.ret
    result.stdout.fnmatch_lines_random(
        [
            "tasks/task_broken.py:2: import_error _module: ZeroDivisionError: division by zero (tasks/*.py:2 *",
            "tasks/task_quizzes.py:6: python_error CapitalsQuiz._get_instruction_text: item 0, *: KeyError: 'land' *",
            "tasks/task_twice.py: the task name 'Functions' is taken by tasks/task_code.py*",
        ]
    )
    assert not (everything.path / "prompts.txt").exists()


def test_bad_items_can_be_left_out(everything: Project) -> None:
    everything.write("tasks/questions.csv", "question,answer,id\nWhat is the colour of the sky?,blue,a\nWhat?,x,a\n")
    result = everything.run_pytest(
        "tasks/task_quizzes.py", "--lm-adapter=oracle:Oracle", "--lm-allow-bad-tasks", "-kQuestions", "-Wignore"
    )

    result.assert_outcomes(passed=1, deselected=3)
    assert "duplicate_task_id id: item 1: 'a' is already the id of item 0" in str(everything.board()["bad_records"])


def test_what_raises_while_it_scores_is_an_error_of_its_example_with_the_line(everything: Project) -> None:
    everything.edit("tasks/task_talks.py", "completion, re.DOTALL)[0]", "completion, re.DOTALL)[1]")
    result = everything.run_pytest("tasks/task_talks.py", "--lm-adapter=oracle:Oracle", "--lm-gate=none")

    assert 3 == result.ret
    result.stdout.fnmatch_lines(
        ["Programs: ex-0 could not be scored (error): Programs.evaluate raised IndexError: *talks.py:60 in code_in)"]
    )
    assert [4, 2] == [everything.board()["counts"][kind] for kind in ("collected", "errors")]


def test_formatting_is_checked_recorded_and_checked_again(everything: Project) -> None:
    first = everything.run_pytest("--lm-check-formatting")
    update = everything.run_pytest("--lm-check-formatting=update", "-n2")
    same = everything.run_pytest("--lm-check-formatting")
    everything.edit("tasks/task_code.py", "Finish this", "Complete this")
    changed = everything.run_pytest("--lm-check-formatting=check", "tasks")

    first.assert_outcomes(failed=21)
    first.stdout.fnmatch_lines(["Functions: the first prompt in the format chatml is not recorded yet"])
    assert [0, 0] == [update.ret, same.ret]
    same.assert_outcomes(passed=21)
    changed.assert_outcomes(failed=3, passed=18)
    changed.stdout.fnmatch_lines(
        ["Functions: the first prompt in the format llama3 was *, is *", "    | *Complete this:", "*=update"]
    )
    recorded = json.loads((everything.path / "tasks" / "formatting.json").read_text())
    assert SCORES.keys() == recorded["prompts"].keys()
    assert not (everything.path / "reports").exists()


def test_a_python_file_of_somebody_else_stays_what_it_is(project: Project) -> None:
    project.write("tasks/task_queue.py", "def test_of_theirs():\n    pass\n")
    ini = project.path / "pytest.ini"
    ini.write_text(ini.read_text() + "python_files = task_*.py\n")

    project.run_pytest().assert_outcomes(passed=1)
