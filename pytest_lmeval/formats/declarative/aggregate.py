"""The metrics of a task: over the scores of all its rows, those of every repeat among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import ScoringError, nearest
from pytest_lmeval.formats.declarative import aggregations as pure
from pytest_lmeval.formats.declarative.decision import ScoreRule, score_of_task
from pytest_lmeval.formats.declarative.models.scorers import (
    BinaryClassification,
    CountMetric,
    FieldMetric,
    Frequency,
    Metric,
    MulticlassClassification,
    PythonMetric,
    WeightedAverage,
)
from pytest_lmeval.formats.declarative.scoring.judges import judge_notes
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.declarative.snippets import Snippet, attributes, plain
from pytest_lmeval.judging.agreement import confusion
from pytest_lmeval.types import ExampleResult

_MOST_VALUES = 50
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One metric of one scorer; ``snippet`` is the function of a metric in Python."""

    scorer: str
    metric: Metric
    default_name: str = ""
    snippet: Snippet | None = None

    @property
    def names(self) -> list[str] | None:
        """The names of its numbers on the board; None where they are known only after the computation."""
        words = self.metric.words
        if len(words) > 1:
            return [self.prefixed(word) for word in words]
        return [self.named(*words)] if words else None

    def named(self, word: str) -> str:
        """Return what the board calls a metric of one number, instead of its own ``word``."""
        return self.metric.name or self.metric.key or self.default_name or word

    def prefixed(self, name: str) -> str:
        """Return what the board calls one of several numbers of this metric."""
        prefix = self.metric.name or self.metric.key
        return f"{prefix}.{name}" if prefix else name


@dataclass(slots=True)
class _Metrics:
    """What has been worked out so far; ``taken`` are names of the row's own means of metrics."""

    taken: frozenset[str] = frozenset()
    metrics: dict[str, float] = field(default_factory=dict)
    own: dict[str, dict[str, float]] = field(default_factory=dict)
    classes: pure.Classes = field(default_factory=dict)
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def add(self, scorer: str, metrics: Mapping[str, float]) -> None:
        self.own.setdefault(scorer, {}).update(metrics)
        for name, value in metrics.items():
            free = f"{scorer}.{name}" if name in self.metrics or name in self.taken else name
            if free in self.metrics:
                raise ScoringError(f"scorer {scorer}: two metrics are called {name!r}; give one a name")
            self.metrics[free] = value

    def add_classes(self, classes: pure.Classes, confusion: dict[str, dict[str, int]]) -> None:
        # The board has room for one table: that of the first.
        if not self.classes:
            self.classes, self.confusion = classes, confusion


def aggregate(
    scorers: Sequence[Scorer],
    aggregations: Sequence[Aggregation],
    results: Sequence[ExampleResult],
    decision: ScoreRule,
) -> dict[str, Any]:
    """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` over the rows scored and not excluded.

    ``score`` is that of a task whose rows are measured, where a ``score_metric`` names it. A metric that has no row to
    be worked out from is left out, and named under ``notes.left_out`` with the reason.
    """
    rows = scored_rows(results)
    found = _Metrics(frozenset(name for result in results for name in (result.metric, *result.metrics)))
    for aggregation in aggregations:
        fields = [row["scorers"][aggregation.scorer] for row in rows if aggregation.scorer in row["scorers"]]
        try:
            _apply(aggregation, fields, found)
        except _LeftOut as reason:
            left_out = found.notes.setdefault("left_out", {})
            left_out[f"{aggregation.scorer}.{aggregation.named(aggregation.metric.type)}"] = str(reason)
    own = found.own.get(decision.scorer.key, {}) if decision.scorer is not None else {}
    score = score_of_task(decision, rows, own, found.notes.get("left_out", {}))
    agreed, notes = judge_notes(
        scorers, scored_rows(results, excluded=True), [each.error for each in results if each.status == "error"]
    )
    found.add("judge", agreed)
    found.notes.update(notes)
    found.notes["rows"] = len(rows)
    optional = {"classes": found.classes, "confusion": found.confusion, "notes": found.notes}
    known = {name: value for name, value in optional.items() if value}
    return {"metrics": found.metrics, **({} if score is None else {"score": score}), **known}


def scored_rows(results: Sequence[ExampleResult], *, excluded: bool = False) -> list[Mapping[str, Any]]:
    """Return the details of every row of every repeat of the scored examples, in the order of their ids.

    With ``excluded`` also of those that an action left out: a judge has judged them all the same.
    """
    wanted = [each for each in results if each.is_scored or (excluded and each.status == "excluded")]
    kept = sorted(wanted, key=lambda result: result.id)
    repeats = [repeat for result in kept for repeat in result.details.get("repeats", [result.details])]
    rows = [row for repeat in repeats for row in repeat.get("rows", [repeat])]
    return [row for row in rows if "scorers" in row and (excluded or "excluded" not in row)]


class _LeftOut(Exception):
    """Why a metric cannot be worked out from these rows."""


def _apply(aggregation: Aggregation, fields: Sequence[Fields], found: _Metrics) -> None:
    metric = aggregation.metric
    if not fields and not isinstance(metric, PythonMetric):
        raise _LeftOut("no row was scored")
    if isinstance(metric, PythonMetric):
        found.add(aggregation.scorer, _python(aggregation, fields))
    elif isinstance(metric, BinaryClassification | MulticlassClassification):
        _classify(aggregation, metric, fields, found)
    elif isinstance(metric, WeightedAverage):
        _weigh(aggregation, metric, fields, found)
    else:
        found.add(aggregation.scorer, dict(_simple(aggregation, fields)))


def _simple(aggregation: Aggregation, fields: Sequence[Fields]) -> Iterator[tuple[str, float]]:
    metric = aggregation.metric
    if isinstance(metric, FieldMetric):
        yield aggregation.named(*metric.words), _of_numbers(metric, fields)
    elif isinstance(metric, Frequency):
        shares = pure.frequencies(_labels(metric.field, fields))
        if len(shares) > _MOST_VALUES:
            raise _LeftOut(f"{len(shares)} values; the shares of at most {_MOST_VALUES} are shown")
        prefix = metric.name or metric.key or metric.field
        yield from ((f"{prefix}_{value}", share) for value, share in shares.items())
    elif isinstance(metric, CountMetric):
        yield aggregation.named(*metric.words), _of_counts(metric, fields)


_NUMBERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "std_dev": pure.std_dev,
}


def _of_numbers(metric: FieldMetric, fields: Sequence[Fields]) -> float:
    values = _numbers(metric.field, fields)
    if metric.type == "std_dev" and len(values) < 2:
        raise _LeftOut("a standard deviation takes two rows")
    return float(_NUMBERS[metric.type](values))


def _weigh(aggregation: Aggregation, metric: WeightedAverage, fields: Sequence[Fields], found: _Metrics) -> None:
    labels = _labels(metric.field, fields)
    name = aggregation.named(*metric.words)
    others = Counter(label for label in labels if label not in metric.weights)
    if others:
        found.notes.setdefault("without_weight", {})[f"{aggregation.scorer}.{name}"] = dict(sorted(others.items()))
    if not (weighed := [label for label in labels if label in metric.weights]):
        raise _LeftOut(f"no weight for any label of {metric.field}: {', '.join(sorted(others))[:200]}")
    found.add(aggregation.scorer, {name: pure.weighted_average(weighed, dict(metric.weights))})


def _of_counts(metric: CountMetric, fields: Sequence[Fields]) -> float:
    true, false, missed = _counts(metric, fields)
    if metric.type == "precision":
        return pure.ratio(true, true + false)
    if metric.type == "recall":
        return pure.ratio(true, true + missed)
    return pure.f1(true, false, missed)


def _counts(metric: CountMetric, fields: Sequence[Fields]) -> tuple[float, float, float]:
    if metric.field_gt is not None and metric.field_pred is not None:
        sought = _as_label(metric.positive_answer)
        pairs = _pairs(metric.field_gt, metric.field_pred, fields)
        return (
            sum(true == sought == guess for true, guess in pairs),
            sum(true != sought == guess for true, guess in pairs),
            sum(true == sought != guess for true, guess in pairs),
        )
    names = (metric.num_true_positives_field, metric.num_false_positives_field, metric.num_false_negatives_field)
    true, false, missed = (sum(_numbers(name, fields)) if name is not None else 0.0 for name in names)
    return true, false, missed


def _classify(
    aggregation: Aggregation,
    metric: BinaryClassification | MulticlassClassification,
    fields: Sequence[Fields],
    found: _Metrics,
) -> None:
    pairs = _pairs(metric.field_gt, metric.field_pred, fields)
    if isinstance(metric, BinaryClassification):
        answers = {_as_label(metric.positive_answer), _as_label(metric.negative_answer)}
        others = [pair for pair in pairs if not answers.issuperset(pair)]
        pairs = [pair for pair in pairs if answers.issuperset(pair)]
        if others:
            found.notes.setdefault("neither_answer", {})[aggregation.scorer] = len(others)
    if not pairs:
        raise _LeftOut("no row has both labels")
    true, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    classes = pure.classify(true, predicted)
    accuracy = sum(a == b for a, b in pairs) / len(pairs)
    found.add_classes(classes, confusion(true, predicted))
    numbers = {"accuracy": accuracy, **_averages(metric, classes)}
    found.add(aggregation.scorer, {aggregation.prefixed(name): value for name, value in numbers.items()})


def _averages(metric: BinaryClassification | MulticlassClassification, classes: pure.Classes) -> dict[str, float]:
    if isinstance(metric, BinaryClassification):
        zero: Any = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
        own = classes.get(_as_label(metric.positive_answer), zero)
        return {"precision": own["precision"], "recall": own["recall"], "f1_score": own["f1"]}
    count = len(classes)
    return {
        "macro_precision": sum(each["precision"] for each in classes.values()) / count,
        "macro_recall": sum(each["recall"] for each in classes.values()) / count,
        "macro_f1_score": sum(each["f1"] for each in classes.values()) / count,
    }


def _python(aggregation: Aggregation, fields: Sequence[Fields]) -> dict[str, float]:
    snippet = aggregation.snippet
    assert snippet is not None
    returned = snippet([attributes(dict(each)) for each in fields])
    where = f"{snippet.owner}: {snippet.function} in {snippet.filename}"
    try:
        numbers = plain(returned)
    except ValueError as error:
        raise ScoringError(f"{where} returned what is no metric: {error}") from None
    if not isinstance(numbers, dict) or not all(isinstance(each, int | float) for each in numbers.values()):
        raise ScoringError(f"{where} returned {returned!r:.80}; expected a mapping of names to numbers")
    return {aggregation.prefixed(name): float(value) for name, value in numbers.items()}


def _values(name: str, fields: Sequence[Fields]) -> list[Any]:
    """Return the values of a field, without those that are null."""
    for each in fields:
        if name not in each:
            hint = nearest(name, each, "it has")
            raise ScoringError(f"a metric takes the field {name!r}, which a row does not have{hint}")
    values = [each[name] for each in fields if each[name] is not None]
    if not values:
        raise _LeftOut(f"{name} has no value in any row")
    return values


def _numbers(name: str, fields: Sequence[Fields]) -> list[float]:
    values = _values(name, fields)
    wrong = next((value for value in values if not isinstance(value, bool | int | float)), None)
    if wrong is not None:
        raise ScoringError(f"a metric takes numbers, and the field {name!r} is {wrong!r:.80}")
    return [float(value) for value in values]


def _labels(name: str, fields: Sequence[Fields]) -> list[str]:
    return [_as_label(value) for value in _values(name, fields)]


def _pairs(true: str, predicted: str, fields: Sequence[Fields]) -> list[tuple[str, str]]:
    _values(true, fields), _values(predicted, fields)
    both = [each for each in fields if each[true] is not None and each[predicted] is not None]
    return [(_as_label(each[true]), _as_label(each[predicted])) for each in both]


def _as_label(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
