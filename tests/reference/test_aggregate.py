"""Metrics over all rows: the numbers of scikit-learn, and what is left out, with the reason."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.models import metrics as pure
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.judging.summary import confusion
from tests.formats.declarative.making import EQUALS, make, score

COPY = """
def compute_scores(sample, solver_output):
    return {key: sample[key] for key in sample if key not in ('q', 'sample_id')}
"""
_PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=40)


def _task(folder: Path, metrics: list[dict[str, Any]], rows: list[dict[str, Any]]) -> DeclarativeTask:
    scorer = {"type": "python", "compute_scores_snippet": COPY, "metrics": metrics, "purpose": "qa"}
    return make(folder, [scorer], [{"q": "?", **row} for row in rows])


def _metrics(folder: Path, metrics: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    task = _task(folder, metrics, rows)
    found: dict[str, Any] = dict(task.aggregate(score(task, *[""] * len(rows))))
    return found


# --- the numbers -----------------------------------------------------------------------------------------------------


@given(_PAIRS)
def test_classes_are_those_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    labels = sorted({*true, *predicted})
    expected = precision_recall_fscore_support(true, predicted, labels=labels, zero_division=0)
    classes = pure.classify(true, predicted)
    assert labels == list(classes)
    for number, label in enumerate(labels):
        assert pytest.approx([each[number] for each in expected]) == list(classes[label].values())
    if len(labels) > 1:
        matrix = confusion_matrix(true, predicted, labels=labels)
        table = confusion(true, predicted)
        assert matrix.tolist() == [[table.get(a, {}).get(b, 0) for b in labels] for a in labels]


@given(_PAIRS)
def test_precision_recall_and_f1_of_labels_are_those_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    true, predicted = [a == "a" for a, _ in pairs], [b == "a" for _, b in pairs]
    hits = sum(a and b for a, b in zip(true, predicted, strict=True))
    expected = precision_recall_fscore_support(true, predicted, average="binary", zero_division=0)[:3]
    false, missed = sum(predicted) - hits, sum(true) - hits
    found = (pure.ratio(hits, hits + false), pure.ratio(hits, hits + missed), pure.f1(hits, false, missed))
    assert pytest.approx(expected) == found


def test_a_report_on_many_labels(tmp_path: Path) -> None:
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("c", "a"), ("c", "d")]
    metric = {"type": "multiclass_classification", "field_gt": "gt", "field_pred": "p"}
    found = _metrics(tmp_path, [metric], [{"gt": a, "p": b} for a, b in pairs] + [{"gt": "a", "p": None}])
    true, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    averages = precision_recall_fscore_support(true, predicted, average="macro", zero_division=0)[:3]
    names = ("macro_precision", "macro_recall", "macro_f1_score")
    assert pytest.approx(averages) == tuple(found["metrics"][name] for name in names)
    assert pytest.approx(accuracy_score(true, predicted)) == found["metrics"]["accuracy"]
    assert {"a": 1, "d": 1} == found["confusion"]["c"]
    assert {"precision": 0.0, "recall": 0.0, "f1": 0.0, "n": 2} == found["classes"]["c"]


def test_a_report_on_two_labels(tmp_path: Path) -> None:
    pairs = [("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no"), ("yes", "maybe")]
    metric = {"type": "binary-classification", "field_gt": "gt", "field_pred": "p", "name": "answers"}
    metric |= {"positive_answer": "yes", "negative_answer": "no"}
    found = _metrics(tmp_path, [metric], [{"gt": a, "p": b} for a, b in pairs])
    kept = pairs[:4]
    expected = f1_score([a for a, _ in kept], [b for _, b in kept], pos_label="yes")
    assert pytest.approx(float(expected)) == found["metrics"]["answers.f1_score"]
    assert {"python": 1} == found["notes"]["neither_answer"]
    assert {"no": {"no": 1, "yes": 1}, "yes": {"no": 1, "yes": 1}} == found["confusion"]


def test_booleans_are_labels_too(tmp_path: Path) -> None:
    metric: dict[str, Any] = {"type": "binary_classification", "field_gt": "gt", "field_pred": "p"}
    metric |= {"positive_answer": True, "negative_answer": False}
    rows = [{"gt": True, "p": True}, {"gt": False, "p": True}]
    assert 0.5 == _metrics(tmp_path, [metric], rows)["metrics"]["precision"]


def test_simple_numbers(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"x": 1, "ok": True, "l": "red"},
        {"x": 4, "ok": False, "l": "blue"},
        {"x": None, "ok": True, "l": "red"},
    ]
    metrics: list[dict[str, Any]] = [
        *({"type": kind, "field": "x"} for kind in ("mean", "min", "max", "std_dev")),
        {"type": "mean", "field": "ok", "name": "share ok"},
        {"type": "mean", "field": "ok", "key": "okay"},
        {"type": "frequency", "field": "l"},
        {"type": "weighted_average", "field": "l", "weights": {"red": 1.0, "blue": 0.25}},
    ]
    assert (
        pytest.approx(
            {
                "x_mean": 2.5,
                "x_min": 1.0,
                "x_max": 4.0,
                "x_std_dev": statistics.stdev([1, 4]),
                "share ok": 2 / 3,
                "okay": 2 / 3,
                "l_red": 2 / 3,
                "l_blue": 1 / 3,
                "l_weighted_average": 0.75,
            }
        )
        == _metrics(tmp_path, metrics, rows)["metrics"]
    )


def test_precision_recall_and_f1_from_counts_or_labels(tmp_path: Path) -> None:
    counts = {"num_true_positives_field": "tp", "num_false_positives_field": "fp", "num_false_negatives_field": "fn"}
    labels = {"field_gt": "gt", "field_pred": "p", "positive_answer": "y"}
    kinds = ("precision", "recall", "f1_score")
    metrics = [{"type": kind, **counts} for kind in kinds]
    metrics += [{"type": kind, "name": f"label {kind}", **labels} for kind in kinds]
    rows = [{"tp": 2, "fp": 1, "fn": 0, "gt": "y", "p": "y"}, {"tp": 1, "fp": 1, "fn": 3, "gt": "y", "p": "n"}]
    found = _metrics(tmp_path, metrics, rows)["metrics"]
    assert pytest.approx([3 / 5, 3 / 6, 6 / 11]) == [found[kind] for kind in kinds]
    assert pytest.approx([1.0, 0.5, 2 / 3]) == [found[f"label {kind}"] for kind in kinds]


# --- python ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compute_metrics", "compute_scores"])
def test_a_metric_in_python_gets_the_scores_of_all_rows(tmp_path: Path, name: str) -> None:
    source = f"def {name}(scores):\n    return {{'total': sum(each['x'] for each in scores), 'n': len(scores)}}"
    metrics = [{"type": "python", "compute_metrics_snippet": source}]
    assert {"total": 5.0, "n": 2.0} == _metrics(tmp_path, metrics, [{"x": 2}, {"x": 3}])["metrics"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('0 scores')", "metric of scorer python: compute_metrics in small.yaml, snippet of line"),
        ("return {'x': float('nan')}", "returned an invalid metric: x is nan; expected a finite number"),
        ("return {'x': 'high'}", "expected a mapping of names to numbers"),
        ("return 3", "expected a mapping of names to numbers"),
    ],
)
def test_a_metric_in_python_that_fails_is_named(tmp_path: Path, body: str, problem: str) -> None:
    metrics = [{"type": "python", "compute_metrics_snippet": f"def compute_metrics(scores): {body}"}]
    with pytest.raises(ScoringError, match=r"^metric of scorer python: compute_metrics in small.yaml") as caught:
        _metrics(tmp_path, metrics, [{"x": 1}])
    assert problem in str(caught.value)


# --- what does not fit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        ({"type": "mean", "field": "xx"}, "takes the field 'xx', which a row lacks; did you mean 'x'"),
        ({"type": "mean", "field": "l"}, "a metric takes numbers, and the field 'l' is 'red'"),
    ],
)
def test_a_metric_of_what_is_not_there_is_an_error(tmp_path: Path, metric: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScoringError, match=problem):
        _metrics(tmp_path, [metric], [{"x": 1, "l": "red"}])


def test_labels_without_a_weight_are_left_out_of_a_weighted_average_and_counted(tmp_path: Path) -> None:
    metric = {"type": "weighted_average", "field": "l", "weights": {"red": 1.0, "blue": 0.5}}
    found = _metrics(tmp_path, [metric], [{"l": "red"}, {"l": "blue"}, {"l": "pink"}, {"l": "pink"}])
    assert {"l_weighted_average": 0.75} == found["metrics"]
    assert {"python.l_weighted_average": {"pink": 2}} == found["notes"]["without_weight"]
    none = _metrics(tmp_path, [metric], [{"l": "pink"}])
    assert {} == none["metrics"]
    assert {"python.weighted_average": "no weight for any label of l: pink"} == none["notes"]["left_out"]


def test_a_metric_that_cannot_be_worked_out_is_left_out_with_the_reason(tmp_path: Path) -> None:
    metrics = [{"type": "std_dev", "field": "x"}, {"type": "mean", "field": "y"}, {"type": "frequency", "field": "x"}]
    found = _metrics(tmp_path, metrics, [{"x": 1, "y": None}])
    assert {"x_1": 1.0} == found["metrics"]
    assert {
        "python.std_dev": "a standard deviation needs two rows",
        "python.mean": "y has no value in any row",
    } == found["notes"]["left_out"]
    many = _metrics(tmp_path, metrics[2:], [{"x": number} for number in range(51)])
    assert "51 values; at most 50 shares are shown" == many["notes"]["left_out"]["python.frequency"]
    task = make(tmp_path)
    assert {"string_equals.string_equality_mean": "no row was scored"} == task.aggregate([])["notes"]["left_out"]


def test_names_that_clash_are_kept_apart(tmp_path: Path) -> None:
    other = {**EQUALS, "key": "other", "ground_truth": "1"}
    task = make(tmp_path, [EQUALS, other])
    assert {"string_equality_mean": 1.0, "other.string_equality_mean": 0.5} == task.aggregate(score(task, "1", "2"))[
        "metrics"
    ]
    twice = [{"type": "mean", "field": "x", "name": "m"}] * 3
    with pytest.raises(ScoringError, match="two metrics are called 'm'; give one a name"):
        _metrics(tmp_path, twice, [{"x": 1}])


def test_a_metric_that_is_named_as_its_scorer_does_not_replace_the_mean_score(tmp_path: Path) -> None:
    snippet = "def compute_scores(sample, solver_output): return {'right': sample['right'], 'votes': sample['votes']}"
    metrics = [{"type": "mean", "field": "votes", "name": "python"}]
    scorer = {"type": "python", "compute_scores_snippet": snippet, "metrics": metrics, "score_field": "right"}
    task = make(tmp_path, [scorer], [{"q": "?", "right": True, "votes": 5}] * 2)
    results = score(task, "", "")
    assert ["python"] * 2 == [result.metric for result in results]
    assert {"python.python": 5.0} == task.aggregate(results)["metrics"]


def test_all_repeats_count_and_what_was_not_scored_does_not(tmp_path: Path) -> None:
    task = make(tmp_path)
    results = score(task, ["1", "1", "x"], ["2", "y", "z"])
    aggregated = task.aggregate(results)
    assert (0.5, 6) == (aggregated["metrics"]["string_equality_mean"], aggregated["notes"]["rows"])
    assert 3 == task.aggregate(results[:1])["notes"]["rows"]


def test_rows_that_take_their_score_from_different_fields_are_an_error(tmp_path: Path) -> None:
    scorer = {"type": "python", "compute_scores_snippet": COPY}
    task = make(tmp_path, [scorer], [{"q": "?", "n": 1, "ok": "x"}, {"q": "?", "n": 5, "ok": True}])
    with pytest.raises(ScoringError, match=r"different fields: python\.n, python.ok; set score_field"):
        task.aggregate(score(task, "", ""))


def test_rows_of_which_some_are_measured_are_an_error(tmp_path: Path) -> None:
    scorer = {"type": "python", "compute_scores_snippet": COPY, "metrics": [{"type": "mean", "field": "n"}]}
    task = make(tmp_path, [scorer], [{"q": "?", "n": 1}, {"q": "?", "n": 3}])
    with pytest.raises(ScoringError, match=r"different fields: no field, python\.n; set score_field"):
        task.aggregate(score(task, "", ""))


def test_a_score_metric_that_is_no_share_is_an_error(tmp_path: Path) -> None:
    snippet = "def compute_metrics(scores):\n    return {'f': 2.0}"
    metrics = [{"type": "python", "compute_metrics_snippet": snippet}]
    scorer = {"type": "python", "compute_scores_snippet": COPY, "metrics": metrics, "score_metric": "f"}
    task = make(tmp_path, [scorer], [{"q": "?", "n": 3}])
    with pytest.raises(ScoringError, match=r"score_metric 'f' is 2.0; expected a number in \[0, 1\]"):
        task.aggregate(score(task, ""))


def test_a_score_metric_beside_a_score_of_each_row_is_an_error(tmp_path: Path) -> None:
    metrics = [{"type": "max", "field": "n", "name": "f"}]
    scorer = {"type": "python", "compute_scores_snippet": COPY, "metrics": metrics, "score_metric": "f"}
    task = make(tmp_path, [scorer], [{"q": "?", "n": 1}])
    with pytest.raises(ScoringError, match=r"score_metric 'f': the score of each row is python\.n; remove"):
        task.aggregate(score(task, ""))
