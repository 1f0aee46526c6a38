"""The results of a task to its row: faults are counted, never averaged in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.leaderboard.aggregations import breakdown
from pytest_lmeval.leaderboard.rows import TaskInfo, make_row
from pytest_lmeval.stats.intervals import score_bounds, standard_error
from pytest_lmeval.types import ExampleResult

INFO = TaskInfo("sums", "tasks/sums.jsonl", "ab12", "exact_match", 9, 9)
PASSED = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", latency_ms=2.0)
FAILED = replace(PASSED, id="b", status="failed", score=0.0, hash="h2", latency_ms=4.0)
ERROR = replace(PASSED, id="c", status="error", score=None, hash="h3", latency_ms=None, error="down")
TIMEOUT = replace(ERROR, id="d", status="timeout", hash="h4")
EXCLUDED = replace(ERROR, id="e", status="excluded", hash="h5")
ROW_KEYS = [
    *("task", "path", "sha256", "metric", "score", "stderr", "ci95", "correct", "total", "errors"),
    *("timeouts", "excluded", "unparsed", "latency_ms", "threshold", "min_score", "metrics", "subjects"),
]
RECORD_KEYS = ["id", "prompt", "prediction", "output", "targets", "score", "status", "latency_ms", "hash"]


def test_the_score_is_the_mean_of_the_scored_examples_alone() -> None:
    row = make_row(INFO, [PASSED, FAILED, ERROR, TIMEOUT, EXCLUDED])
    assert 0.5 == row.score
    assert (standard_error([1.0, 0.0]), score_bounds([1.0, 0.0])) == (row.stderr, row.ci95)
    assert (1, 5, 1, 1, 1) == (row.correct, row.total, row.errors, row.timeouts, row.excluded)


def test_a_row_without_a_scored_example_has_no_score() -> None:
    for results in ([], [ERROR, TIMEOUT]):
        row = make_row(INFO, results)
        assert (None, None, None, None, 0) == (row.score, row.stderr, row.ci95, row.latency_ms, row.correct)
        assert len(results) == row.total


def test_the_file_s_facts_are_carried_over() -> None:
    row = make_row(INFO, [PASSED])
    assert ("sums", "tasks/sums.jsonl", "ab12", "exact_match") == (row.task, row.path, row.sha256, row.metric)


@pytest.mark.parametrize(
    ("score", "threshold", "correct"), [(0.5, 0.5, 1), (0.4999, 0.5, 0), (0.0, 0.0, 1), (None, 0.0, 0), (1.0, 1.0, 1)]
)
def test_correct_counts_scores_at_or_above_their_threshold(score: float | None, threshold: float, correct: int) -> None:
    # "below" passes under another gate, and is no more correct for it.
    result = replace(PASSED, status="below", score=score, threshold=threshold)
    assert correct == make_row(INFO, [result]).correct


def test_the_latency_is_the_mean_of_those_known() -> None:
    assert 3.0 == make_row(INFO, [PASSED, FAILED, ERROR]).latency_ms


def test_a_threshold_is_shown_where_it_is_the_same_for_all() -> None:
    assert 1.0 == make_row(INFO, [PASSED, FAILED]).threshold
    assert make_row(INFO, [PASSED, replace(FAILED, threshold=0.5)]).threshold is None


def test_unparsed_is_counted_apart_from_wrong() -> None:
    row = make_row(INFO, [PASSED, FAILED, replace(FAILED, id="f", unparsed=True)])
    assert (1, 3) == (row.unparsed, row.total)


def test_a_mixed_task_has_a_score_for_each_metric() -> None:
    other = replace(FAILED, metric="f1", score=0.25)
    row = make_row(replace(INFO, metric="mixed"), [PASSED, other, replace(ERROR, metric="bleu_4")])
    assert ("mixed", 0.625) == (row.metric, row.score)
    assert {"bleu_4": None, "exact_match": 1.0, "f1": 0.25} == row.metrics


def test_a_lost_metric_is_taken_from_the_results() -> None:
    lost = TaskInfo("sums", "")
    assert "exact_match" == make_row(lost, [PASSED]).metric
    assert "mixed" == make_row(lost, [PASSED, replace(FAILED, metric="f1")]).metric


def test_a_task_of_several_categories_is_broken_down_by_them() -> None:
    results = [replace(PASSED, category="mcq"), replace(FAILED, category="mcq"), replace(ERROR, category="summary")]
    expected = {"mcq": {"score": 0.5, "total": 2}, "summary": {"score": None, "total": 1}}
    assert expected == make_row(INFO, results).subjects
    assert {} == make_row(INFO, results[:2]).subjects


def test_a_breakdown_is_sorted() -> None:
    assert ["a", "b", "c"] == list(breakdown([("c", PASSED), ("a", FAILED), ("b", ERROR)]))


def test_the_json_has_the_documented_keys_in_order() -> None:
    row = make_row(INFO, [PASSED])
    assert [*ROW_KEYS, "spent"] == list(row.to_json())
    assert [*ROW_KEYS, "spent", "per_example"] == list(row.to_json(per_example=True))


def test_a_record_of_an_example_has_the_documented_keys() -> None:
    result = replace(PASSED, prompt="2 + 3 =", outputs=(" 5",), predictions=("5",), targets=("5", "five"))
    (record,) = make_row(INFO, [result]).to_json(per_example=True)["per_example"]
    assert RECORD_KEYS == list(record)
    expected = ["a", "2 + 3 =", "5", " 5", ["5", "five"], 1.0, "passed", 2.0, "h1"]
    assert expected == list(record.values())


def test_a_record_of_a_fault_says_what_happened_and_has_no_score() -> None:
    (record,) = make_row(INFO, [ERROR]).to_json(per_example=True)["per_example"]
    fields = ("status", "score", "output", "prediction", "error")
    assert ["error", None, None, None, "down"] == [record[field] for field in fields]


def test_details_stand_in_the_record() -> None:
    row = make_row(INFO, [replace(PASSED, details={"code_status": "pass"})])
    assert {"code_status": "pass"} == row.to_json(per_example=True)["per_example"][0]["details"]


@settings(deadline=None)
@given(st.permutations([PASSED, FAILED, ERROR, TIMEOUT, EXCLUDED, replace(FAILED, id="f", score=0.3, category="x")]))
def test_the_order_of_the_results_never_matters(results: list[Any]) -> None:
    expected = make_row(INFO, sorted(results, key=lambda result: str(result.id)))
    assert expected.to_json(per_example=True) == make_row(INFO, results).to_json(per_example=True)


def test_records_are_in_the_order_of_the_numbers_in_their_ids() -> None:
    names = ["ex-10", "ex-2", "b", "ex-1", "ex-01", "9" * 5000, "10"]
    row = make_row(INFO, [replace(PASSED, id=name) for name in names])

    assert ["10", "9" * 5000, "b", "ex-01", "ex-1", "ex-2", "ex-10"] == [record.id for record in row.per_example]


def test_a_row_of_labels_has_its_classes_and_what_was_taken_for_what() -> None:
    spam = replace(PASSED, category="classification", targets=("spam",), predictions=("spam",))
    missed = replace(spam, id="m", status="failed", score=0.0, predictions=("ham",))
    row = make_row(TaskInfo("sums", ""), [spam, missed, replace(spam, id="h", targets=("ham",), predictions=("ham",))])
    assert {"ham": {"ham": 1}, "spam": {"ham": 1, "spam": 1}} == row.confusion
    assert (0.5, 2) == (row.classes["spam"]["recall"], row.classes["spam"]["n"])
    assert {"classes", "confusion"} <= row.to_json().keys()


def test_a_row_without_labels_has_no_classes() -> None:
    assert set() == {"classes", "confusion"} & make_row(TaskInfo("sums", ""), [PASSED]).to_json().keys()


def test_examples_of_one_cluster_count_as_one_observation() -> None:
    scores = [1.0, 1.0, 0.0, 0.0]
    results = [replace(PASSED, id=str(n), score=score) for n, score in enumerate(scores)]
    clustered = [replace(result, cluster=f"c{result.score}") for result in results]
    alone, together = (make_row(TaskInfo("sums", ""), each) for each in (results, clustered))
    assert (alone.stderr or 0.0) < (together.stderr or 0.0)
    assert (together.ci95 or (1.0,))[0] < (alone.ci95 or (0.0,))[0]


def test_further_metrics_stand_beside_the_first() -> None:
    results = [replace(PASSED, metrics={"rouge_1": 1.0}), replace(PASSED, id="b", metrics={"rouge_1": 0.5})]
    row = make_row(TaskInfo("sums", ""), results)
    assert 0.75 == row.metrics["rouge_1"]
    assert {"exact_match", "rouge_1"} == row.metrics.keys()
