"""Judges in a run: asked ahead, kept in the ledger, missed by name, and there for tests in Python."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project

JUDGE = """
import json, os

class Judge:
    name = "judge.v1"

    def generate(self, prompts):
        with open(os.path.join(os.path.dirname(__file__), "judged.txt"), "a") as file:
            file.write(json.dumps(list(prompts)) + "\\n")
        return ["yes" if "good" in prompt else "no" for prompt in prompts]
"""
TASK = """
display_name: Politeness
key: polite
description: Whether the answers are good.
config_spec: []
definition:
  dataset: {path: rows.csv}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "say: {{ sample.said }}"}]
  scorers:
    - key: verdict
      type: model_as_a_judge_classifier
      correct_labels: ["yes"]
      incorrect_labels: ["no"]
      MODEL
      user_prompt: "Judge: {{ solver_output.output.choices[0].message.content }}"
"""


CLASS = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask, LLMJudgeScore

class Verdict(LLMJudgeScore):
    NAME = "verdict"
    LABELS = {"yes": 1.0, "no": 0.0}
    PROMPT = "Judge: {prediction}"

class Polite(BaseTask[str]):
    NAME = "polite"
    DATASET_PATH = "rows.csv"
    METRICS = [Verdict, AccuracyCompletion]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return "good 1"
"""


@pytest.fixture(params=["yaml", "class"])
def judged(project: Project, request: pytest.FixtureRequest) -> Project:
    project.write("judge.py", JUDGE)
    project.write("tasks/rows.csv", "said\ngood 1\nbad 2\ngood 3\n")
    if request.param == "yaml":
        project.write("tasks/polite.yaml", TASK.replace("      MODEL\n", ""))
    else:
        project.write("tasks/task_polite.py", CLASS)
    return project


def judgements(project: Project) -> list[str]:
    path = project.path / "judged.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(prompt for line in lines for prompt in json.loads(line))


@pytest.mark.parametrize(
    ("judged", "processes"),
    [("yaml", "-n0"), ("class", "-n0"), ("class", "-n2"), pytest.param("yaml", "-n2", marks=pytest.mark.again)],
    indirect=["judged"],
)
def test_every_answer_is_judged_once_and_the_board_says_by_whom(judged: Project, processes: str) -> None:
    result = judged.run(processes, "--lm-judge=judge:Judge", "--lm-include-per-example")
    assert 1 == result.ret, result.stdout.str()
    assert [f"Judge: {said}" for said in ("bad 2", "good 1", "good 3")] == judgements(judged)
    told = "*judge: scorer: verdict; judge: judge.v1; output: no; *: *; repaired: False"
    result.stdout.fnmatch_lines([told])
    (row,) = judged.board()["tasks"]
    assert pytest.approx(2 / 3) == row["score"]
    assert {"judge.v1"} == {record["details"]["judge"][0]["judge"] for record in row["per_example"]}
    outputs = [record["details"]["judge"][0]["output"] for record in row["per_example"]]
    assert ["no", "yes", "yes"] == sorted(outputs)


def test_what_a_judge_said_before_a_crash_is_not_asked_again(judged: Project) -> None:
    judged.run("--lm-judge=judge:Judge")
    ledger = judged.path / "reports/ledger.jsonl"
    header, *lines = ledger.read_text().splitlines()
    ledger.write_text("\n".join([header, *[line for line in lines if '"status"' in line][:2]]) + "\n")
    (judged.path / "judged.txt").unlink()
    judged.run("--lm-judge=judge:Judge", "--lm-resume")
    assert 1 == len(judgements(judged))
    assert 3 == judged.board()["counts"]["scored"]


def test_a_scorer_may_name_a_judge_of_its_own(judged: Project) -> None:
    if (judged.path / "tasks/polite.yaml").exists():
        judged.write("tasks/polite.yaml", TASK.replace("MODEL", 'model_key: "judge:Judge"'))
    else:
        judged.write("tasks/task_polite.py", CLASS.replace("LABELS =", 'MODEL_KEY = "judge:Judge"\n    LABELS ='))
    judged.run()
    assert 3 == len(judgements(judged))
    assert 3 == judged.board()["counts"]["scored"]


def test_the_board_says_of_a_declarative_task_by_whom_it_was_judged(project: Project) -> None:
    project.write("judge.py", JUDGE)
    project.write("tasks/rows.csv", "said\ngood 1\n")
    project.write("tasks/polite.yaml", TASK.replace("      MODEL\n", ""))
    assert 0 == project.run("--lm-judge=judge:Judge").ret
    (row,) = project.board()["tasks"]
    assert "judge.v1" in json.dumps(row["notes"]["judges"])


def test_a_test_in_python_may_ask_the_judge_of_the_run(judged: Project) -> None:
    judged.write(
        "test_mine.py",
        "def test_it(lm_judge):\n    assert ['yes'] == lm_judge.generate(['good?'])\n\n"
        "def test_other(lm_judge):\n    assert lm_judge\n",
    )
    judged.run_pytest("test_mine.py", "--lm-judge=judge:Judge").assert_outcomes(passed=2)
    result = judged.run_pytest("test_mine.py")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*the lm_judge fixture needs --lm-judge SPEC*"])
