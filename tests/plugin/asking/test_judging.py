"""Judges in a run: asked ahead, kept in the ledger, missed by name, and there for tests in Python."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import Project
from tests.yaml_tasks import POLITE, VERDICT, single_turn

JUDGE = """
import json, os

class Judge:
    name = "judge.v1"

    def generate(self, prompts):
        with open(os.path.join(os.path.dirname(__file__), "judged.txt"), "a") as file:
            file.write(json.dumps(list(prompts)) + "\\n")
        return ["yes" if "good" in prompt else "no" for prompt in prompts]
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
        project.write("tasks/polite.yaml", POLITE)
    else:
        project.write("tasks/task_polite.py", CLASS)
    return project


def judgements(project: Project) -> list[str]:
    path = project.path / "judged.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(prompt for line in lines for prompt in json.loads(line))


@pytest.mark.parametrize(
    ("judged", "processes"),
    [("yaml", "-n0"), ("class", "-n2")],
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


ALWAYS = """
from itertools import count

class Model:
    def generate(self, prompts):
        return ["yes" for _ in prompts]

class Judge:
    numbers = count()

    def generate(self, prompts):
        return ["NO" if next(self.numbers) % 2 else "no" for _ in prompts]
"""


def said(project: Project, folder: str = "reports") -> dict[str, list[str]]:
    entries = {key: each["details"]["repeats"] for key, each in project.examples(folder).items()}
    return {key: [entry["output"] for each in repeats for entry in each["judge"]] for key, repeats in entries.items()}


def test_a_replayed_judge_says_what_the_judge_said_and_nothing_the_model_said(judged: Project) -> None:
    judged.write("m.py", ALWAYS)
    options = ("tasks", "--lm-gate=none", "--lm-include-per-example", "--lm-repeats=2")
    judged.run_pytest("--lm-adapter=m:Model", "--lm-judge=m:Judge", *options, "--lm-report-dir=first")
    assert 0.0 == judged.board("first")["overall_score"]
    for recording in ("ledger.jsonl", "leaderboard.json"):
        for adapter in (f"replay:first/{recording}", "m:Model"):
            judged.run_pytest(f"--lm-adapter={adapter}", f"--lm-judge=replay:first/{recording}", *options)
            assert (0.0, judged.board("first")["digest"]) == (judged.board()["overall_score"], judged.board()["digest"])
            assert said(judged, "first") == said(judged)


def test_a_question_that_a_replayed_judge_was_not_asked_is_an_error(judged: Project) -> None:
    judged.write("m.py", ALWAYS)
    options = ("tasks", "--lm-gate=none", "--lm-include-per-example")
    judged.run_pytest("--lm-adapter=m:Model", "--lm-judge=m:Judge", *options, "--lm-report-dir=first")
    for name, text in (("polite.yaml", POLITE), ("task_polite.py", CLASS)):
        if (judged.path / "tasks" / name).exists():
            judged.write(f"tasks/{name}", text.replace("Judge: {", "Rate: {"))
    ran = judged.run_pytest("--lm-adapter=m:Model", "--lm-judge=replay:first/ledger.jsonl", *options)
    assert (3, 3) == (ran.ret, judged.board()["counts"]["errors"])
    ran.stdout.fnmatch_lines(
        ["*first/ledger.jsonl holds no reply of a judge to this question about * of task 'polite'*"]
    )
    judged.write("plain.jsonl", '{"id": "1", "output": "yes"}\n')
    ran = judged.run_pytest("--lm-adapter=m:Model", "--lm-judge=replay:plain.jsonl", *options)
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines(["*replay:plain.jsonl: holds no reply of a judge; name the ledger of a run with a judge*"])


def test_a_scorer_may_name_a_judge_of_its_own(judged: Project) -> None:
    if (judged.path / "tasks/polite.yaml").exists():
        judged.write("tasks/polite.yaml", single_turn("polite", VERDICT + '  model_key: "judge:Judge"\n'))
    else:
        judged.write("tasks/task_polite.py", CLASS.replace("LABELS =", 'MODEL_KEY = "judge:Judge"\n    LABELS ='))
    judged.run()
    assert 3 == len(judgements(judged))
    assert 3 == judged.board()["counts"]["scored"]


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


STRICT = (
    JUDGE.replace('"good" in prompt', "self.takes in prompt").replace(
        "    name", "    def __init__(self, takes='good'):\n        self.takes = takes\n\n    name"
    )
    + "\n\ndef Hard():\n    return Judge('excellent')\n"
)
ASKS = """
from pytest_lmeval import eval_task

@eval_task("x", data=[{"id": "good"}])
async def test_x(row, lm):
    lm.score("is", await lm.judge("Is it?", row["id"], labels=["yes", "no"]) == "yes")
"""


@pytest.mark.parametrize("judged", ["yaml"], indirect=True)
def test_a_resumed_run_does_not_take_the_replies_of_another_judge_of_the_same_name(judged: Project) -> None:
    judged.write("tests/test_x.py", ASKS)
    judged.write("judge.py", STRICT)
    found = []

    def run(judge: str) -> None:
        (judged.path / "judged.txt").unlink(missing_ok=True)
        judged.run("tasks", "tests", f"--lm-judge=judge:{judge}", "--lm-resume", "--lm-include-per-example")
        passed = sum(each["status"] == "passed" for each in judged.examples().values())
        found.append((len(judgements(judged)), passed))

    for judge in ("Judge", "Judge", "Hard", "Hard"):
        run(judge)
    judged.write("judge.py", STRICT.replace("self.takes in prompt", "prompt"))
    run("Hard")
    run("Hard")
    ledger = judged.path / "reports/ledger.jsonl"
    # An earlier version did not record who of a name replied.
    older, count = re.subn(r',"adapter_key":"\w*"', "", ledger.read_text())
    assert count > 0
    ledger.write_text(older)
    run("Judge")
    assert [(4, 3), (0, 3), (4, 0), (0, 0), (4, 4), (0, 4), (0, 4)] == found
