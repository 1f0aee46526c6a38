"""Several responses to each example: the chance that one of k is right, the majority's word, and the spread."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.leaderboard.aggregations import pass_at_k, pass_hat_k, repeat_errors, repeat_metrics
from pytest_lmeval.leaderboard.rows import TaskInfo, make_row
from pytest_lmeval.loading import default_registry, load_tasks
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, question_of
from pytest_lmeval.types import Completion, ExampleResult

REGISTRY = default_registry()
OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=7)


def result(id: str, scores: Sequence[float], majority: float = 0.0, threshold: float = 1.0) -> ExampleResult:
    mean = math.fsum(scores) / len(scores)
    details = {"scores": list(scores), "majority_score": majority}
    status: Any = "passed" if mean >= threshold else "failed"
    return ExampleResult("t", id, status, mean, threshold, "exact_match", f"h-{id}", details=details)


@given(OUTCOMES, st.integers(1, 7))
def test_pass_at_and_hat_k_are_the_shares_of_draws_of_k_with_a_right_one_and_with_no_wrong_one(
    outcomes: list[bool], k: int
) -> None:
    k = min(k, len(outcomes))
    draws = [*combinations(outcomes, k)]
    for kind, metric in ((any, pass_at_k), (all, pass_hat_k)):
        assert pytest.approx(sum(map(kind, draws)) / len(draws)) == metric(sum(outcomes), len(outcomes), k)


@pytest.mark.parametrize("n", [1, 5, 2000])
def test_pass_at_k_is_exact_at_its_ends(n: int) -> None:
    assert 0.0 == pass_at_k(0, n, n)
    assert 1.0 == pass_at_k(n, n, 1) == pass_at_k(1, n, n)


@pytest.mark.parametrize(
    ("repeats", "ks"), [(2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (5, [1, 2, 4, 5]), (10, [1, 2, 4, 8, 10])]
)
def test_powers_of_two_and_the_whole_are_reported(repeats: int, ks: list[int]) -> None:
    metrics = repeat_metrics([result("a", [1.0] * repeats)])
    hats = [f"pass^{k}" for k in ks if k > 1]
    assert [*(f"pass@{k}" for k in ks), *hats, f"maj@{repeats}"] == list(metrics)


def test_a_run_without_repeats_reports_none() -> None:
    single = ExampleResult("t", "a", "passed", 1.0, 1.0, "exact_match", "h")
    assert ({}, {}) == (repeat_metrics([single]), repeat_errors([single]))
    assert ({}, {}) == (repeat_metrics([]), repeat_errors([]))


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=5))
def test_a_task_s_pass_at_k_is_the_mean_of_its_examples(outcomes: list[list[bool]]) -> None:
    metrics = repeat_metrics([result(f"e{n}", [float(hit) for hit in hits]) for n, hits in enumerate(outcomes)])
    for k in (1, 2, 4):
        of_each = [statistics.fmean(any(draw) for draw in combinations(hits, k)) for hits in outcomes]
        assert pytest.approx(statistics.fmean(of_each)) == metrics[f"pass@{k}"]


def test_a_graded_response_is_right_from_the_threshold_on() -> None:
    metrics = repeat_metrics([result("a", [0.4, 0.5, 0.6, 0.9], threshold=0.6)])
    assert pytest.approx(0.5) == metrics["pass@1"]
    assert pytest.approx(1 - 1 / 6) == metrics["pass@2"]


def test_examples_that_were_not_scored_are_left_out() -> None:
    unscored = ExampleResult("t", "b", "error", None, 1.0, "exact_match", "h", error="no")
    both = [result("a", [1.0, 0.0], majority=1.0), unscored]
    assert {"pass@1": 0.5, "pass@2": 1.0, "pass^2": 0.0, "maj@2": 1.0} == repeat_metrics(both)
    assert 2 == repeat_errors(both)["count"]


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=6))
def test_the_standard_errors_are_the_textbook_s(scores: list[list[float]]) -> None:
    errors = repeat_errors([result(f"e{number}", values) for number, values in enumerate(scores)])
    within = math.sqrt(sum(statistics.variance(values) / 3 for values in scores)) / len(scores)
    means = [statistics.fmean(values) for values in scores]
    between = statistics.stdev(means) / math.sqrt(len(means))
    assert pytest.approx(within, abs=1e-9) == errors["stderr_within"]
    assert pytest.approx(between, abs=1e-9) == errors["stderr_between"]
    assert 3 == errors["count"]


def test_the_spread_between_examples_of_a_single_one_is_unknown() -> None:
    assert repeat_errors([result("a", [1.0, 0.0])])["stderr_between"] is None


def judged(tmp_path: Any, outputs: Sequence[str], metric: str = "exact_match", **extras: Any) -> ExampleResult:
    """Score ``outputs`` as the repeats of one example whose target is ``yes``."""
    path = tmp_path / "t.jsonl"
    record = {"id": "a", "prompt": "2 + 2?", "targets": ["yes"], "metric": metric, "extras": extras}
    path.write_text(json.dumps(record) + "\n")
    (task,) = load_tasks(path, registry=REGISTRY)
    judgement = ScoringRules(Thresholds(REGISTRY), repeats=len(outputs))
    responses = [Completion(output) for output in outputs]
    return evaluate(task, task.examples[0], question_of(task, task.examples[0], "2 + 2?"), responses, judgement)


@pytest.mark.parametrize(
    ("outputs", "score", "majority"),
    [
        (["yes", "yes", "no"], 2 / 3, 1.0),
        (["no", "yes", "no"], 1 / 3, 0.0),
        (["yes", "no"], 0.5, 1.0),
        (["no", "yes"], 0.5, 0.0),
        (["a", "b", "yes", "yes"], 0.5, 1.0),
        (["yes", "yes"], 1.0, 1.0),
    ],
)
def test_the_score_is_the_mean_and_the_majority_is_the_commonest_prediction(
    tmp_path: Any, outputs: list[str], score: float, majority: float
) -> None:
    got = judged(tmp_path, outputs)
    assert pytest.approx(score) == got.score
    assert tuple(outputs) == got.outputs
    assert len(outputs) == len(got.predictions)
    assert majority == got.details["majority_score"]
    assert [float(output == "yes") for output in outputs] == got.details["scores"]
    assert majority == repeat_metrics([got])[f"maj@{len(outputs)}"]


@pytest.mark.parametrize(("threshold", "status"), [(0.5, "passed"), (0.6, "failed")])
def test_the_mean_decides_whether_an_example_passes(tmp_path: Any, threshold: float, status: str) -> None:
    assert status == judged(tmp_path, ["yes", "no"], threshold=threshold).status


def test_the_row_of_a_task_shows_it_all(tmp_path: Any) -> None:
    row = make_row(TaskInfo("t", "tasks/t.jsonl"), [judged(tmp_path, ["yes", "no"])]).to_json()
    assert {"exact_match": 0.5, "pass@1": 0.5, "pass@2": 1.0, "pass^2": 0.0, "maj@2": 1.0} == row["metrics"]
    expected = {"count": 2, "stderr_within": pytest.approx(0.5), "stderr_between": None, "differ": 1}
    assert expected == row["repeats"]
    assert "repeats" not in make_row(TaskInfo("t", "tasks/t.jsonl"), [judged(tmp_path, ["yes"])]).to_json()
