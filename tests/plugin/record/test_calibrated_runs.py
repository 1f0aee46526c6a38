"""Calibration, classes and confusions on the board: of log-probabilities, and of confidences that an adapter gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

MODEL = """
import os
from pytest_lmeval.types import Completion, LogProb

LOSSES = {"yes": 0.5, "no": 1.5, "maybe": 3.0, "A": 0.25, "B": 1.0}

class Probable:
    name = "probable.v1"

    def generate(self, prompts):
        return ["I say B" for _ in prompts]

    def loglikelihood(self, requests):
        return [LogProb(-LOSSES[one.continuation]) for one in requests]

class Sure:
    name = "sure.v1"

    def generate_requests(self, requests):
        if os.path.exists("deadly.txt") and requests[0].id == "c":
            os._exit(7)
        return [self.answer(request.text, request.repeat) for request in requests]

    def answer(self, prompt, repeat):
        said, _, sure = prompt.removeprefix("say: ").partition(" at ")
        tokens = (-0.5, -0.25) if said == "log" else ()
        return Completion(said, confidence=eval(sure) if sure else None, logprobs=tokens)
"""


@pytest.fixture
def choices(project: Project) -> Project:
    """Provide a class and a list of conversations that are scored by log-probabilities."""
    project.write("sure.py", MODEL)
    project.copy("calibrated", "tasks/task_choices.py")
    project.write("tasks/moods.csv", "text,mood\na,yes\nb,no\nc,yes\nd,maybe\n")
    return project


def _row(board: dict[str, Any], task: str) -> dict[str, Any]:
    return next(row for row in board["tasks"] if row["task"] == task)


def _choose(project: Project, *more: str, model: str = "Probable") -> dict[str, Any]:
    project.run_pytest("tasks", f"--lm-adapter=sure:{model}", "--lm-gate=none", "--lm-include-per-example", *more)
    return project.board()


def test_classes_scored_by_log_probabilities_have_calibration_and_confusions(choices: Project) -> None:
    board = _choose(choices)
    row = _row(board, "Moods")
    sure = math.exp(-0.5) / (math.exp(-0.5) + math.exp(-1.5) + math.exp(-3))
    expected = {"ece": abs(sure - 0.5), "brier": (2 * (1 - sure) ** 2 + 2 * sure**2) / 4, "n": 4}
    assert pytest.approx(expected) == row["calibration"]
    assert {"maybe": {"yes": 1}, "no": {"yes": 1}, "yes": {"yes": 2}} == row["confusion"]
    assert {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "n": 2} == row["classes"]["yes"]
    assert 7 == board["calibration"]["n"]
    details = choices.examples()["Moods:ex-0"]["details"]
    assert [0, pytest.approx(sure), 3] == [details["chosen"], details["confidence"], len(details["options"])]


def test_conversations_with_letters_have_them_too_chosen_or_written(choices: Project) -> None:
    row = _row(_choose(choices), "Letters")
    assert {"A": {"A": 2}, "B": {"A": 1}} == row["confusion"]
    assert 3 == row["calibration"]["n"]
    choices.write("sure.py", MODEL.replace("def loglikelihood", "def _unknown"))
    _choose(choices, "-kLetters")
    written = _row(choices.board("reports/selection"), "Letters")
    assert {"A": {"B": 2}, "B": {"B": 1}} == written["confusion"]
    assert "calibration" not in written


def _said(id: str, said: str, sure: str, target: str = "") -> dict[str, Any]:
    prompt = f"say: {said} at {sure}" if sure else f"say: {said}"
    return {"id": id, "prompt": prompt, "targets": [target or said], "metric": "exact_match"}


def test_an_adapter_s_confidence_counts_for_calibration(project: Project) -> None:
    project.write("sure.py", MODEL)
    records = [
        _said("a", "red", "0.75"),
        _said("b", "red", "0.5", "blue"),
        _said("c", "blue", "1"),
        _said("d", "x", ""),
    ]
    project.task("tasks/colours.jsonl", *records)
    board = _choose(project, model="Sure")
    expected = {"ece": pytest.approx((0.25 + 0.5 + 0) / 3), "brier": pytest.approx((0.0625 + 0.25) / 3), "n": 3}
    assert expected == board["calibration"] == _row(board, "colours")["calibration"]
    assert [0.75, None] == [project.examples()[f"colours:{id}"].get("details", {}).get("confidence") for id in "ad"]


def test_a_confidence_is_kept_by_a_resumed_run_and_by_each_response(project: Project) -> None:
    project.write("sure.py", MODEL)
    project.task(
        "tasks/colours.jsonl", _said("a", "red", "[0.5, 0.9][repeat]"), _said("b", "x", ""), _said("c", "y", "0.5")
    )
    whole = _choose(project, "--lm-repeats=2", model="Sure")
    details = project.examples()["colours:a"]["details"]
    assert [0.5, 0.9] == [each["confidence"] for each in details["repeats"]]
    (project.path / "reports/ledger.jsonl").unlink()
    project.write("deadly.txt", "")
    _choose(project, "--lm-repeats=2", "--lm-batch-size=1", "-n1", "--max-worker-restart=0", model="Sure")
    (project.path / "deadly.txt").unlink()
    resumed = _choose(project, "--lm-repeats=2", "--lm-resume", model="Sure")
    assert whole["calibration"] == resumed["calibration"]
    assert details == project.examples()["colours:a"]["details"]


def test_token_log_probabilities_are_a_confidence_where_none_is_given(project: Project) -> None:
    project.write("sure.py", MODEL)
    project.task("tasks/colours.jsonl", _said("a", "log", ""), _said("b", "log", "0.25"))
    _choose(project, model="Sure")
    found = [project.examples()[f"colours:{id}"]["details"]["confidence"] for id in "ab"]
    assert [pytest.approx(math.exp(-0.75)), 0.25] == found


def test_a_confidence_that_is_no_share_is_an_error_of_the_adapter(project: Project) -> None:
    project.write("sure.py", MODEL)
    shares = {"above": "1.5", "below": "-0.1", "nan": "float('nan')", "text": "'high'", "true": "True"}
    faulty = [_said(id, "red", sure) for id, sure in shares.items()]
    project.task("tasks/colours.jsonl", *faulty, _said("fine", "blue", "0.5"))
    result = project.run_pytest("tasks", "--lm-adapter=sure:Sure", "--lm-include-per-example")
    assert 3 == result.ret
    examples = project.examples()
    for id, sure in shares.items():
        example = examples[f"colours:{id}"]
        assert ["error", None] == [example["status"], example["score"]], id
        wanted = f"adapter sure.v1 returned a Completion with confidence {eval(sure)!r}; expected a number in [0, 1]"
        assert wanted in example["error"]
    assert 1.0 == examples["colours:fine"]["score"]


def test_a_metric_s_own_confidence_goes_before_the_adapter_s(project: Project) -> None:
    project.write("sure.py", MODEL)
    project.write(
        "conftest.py",
        "from pytest_lmeval.types import Score\n"
        "def pytest_lmeval_register(registry):\n"
        "    registry.add_metric('own', lambda *_: Score(1.0, {'confidence': 0.125}))\n",
    )
    project.task("tasks/colours.jsonl", {**_said("a", "red", "0.75"), "metric": "own"})
    _choose(project, model="Sure")
    assert {"confidence": 0.125} == project.examples()["colours:a"]["details"]
