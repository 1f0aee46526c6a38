"""Choose the scorer and the field that give a row's score, and compute a task's metrics over all its rows.

Every repeat of an example contributes its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import ScoringError, nearest
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.metrics import Classes, Confusion, FieldMetric, Metric, NoValue, Scores
from pytest_lmeval.formats.declarative.scoring.judges import judge_notes
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.declarative.snippets import Snippet, attributes, plain
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.numbers import is_share
from pytest_lmeval.types import ExampleResult

_SCORERS: Keys = ("definition", "scorers")
_WAYS_OUT = "set score_field, or give the scorer metrics"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A scorer's metric.

    ``snippet`` is the function of a metric written in Python.
    """

    scorer: str
    metric: Metric
    default_name: str = ""
    snippet: Snippet | None = None

    @property
    def names(self) -> list[str]:
        """The names of the metric's numbers on the board; empty if the names are known only after the computation."""
        return self.metric.names(self.default_name)

    def numbers(self, scores: Scores) -> dict[str, float]:
        """Return the metric's numbers by name; raise NoValue if the rows yield no number."""
        if self.snippet is not None:
            return {self.metric.prefixed(name): value for name, value in _computed(self.snippet, scores.rows)}
        if not scores.rows:
            raise NoValue("no row was scored")
        return self.metric.aggregate(scores, self.default_name)


@dataclass(slots=True)
class _Metrics:
    """The metrics computed so far.

    ``taken`` contains the names of the examples' own metrics.
    """

    taken: frozenset[str] = frozenset()
    metrics: dict[str, float] = field(default_factory=dict)
    own: dict[str, dict[str, float]] = field(default_factory=dict)
    classes: Classes = field(default_factory=dict)
    confusion: Confusion = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def add(self, scorer: str, metrics: Mapping[str, float]) -> None:
        self.own.setdefault(scorer, {}).update(metrics)
        for name, value in metrics.items():
            free = f"{scorer}.{name}" if name in self.metrics or name in self.taken else name
            if free in self.metrics:
                raise ScoringError(f"scorer {scorer}: two metrics are called {name!r}; give one a name")
            self.metrics[free] = value


def aggregate(
    scorers: Sequence[Scorer],
    aggregations: Sequence[Aggregation],
    results: Sequence[ExampleResult],
    decision: ScoreRule,
) -> dict[str, Any]:
    """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` for the scored rows that no action excluded.

    If the rows have no score, the task's ``score`` is the metric that ``score_metric`` names. The result omits a metric
    without a value, and ``notes.left_out`` gives the reason.
    """
    rows = scored_rows(results)
    found = _Metrics(frozenset(name for result in results for name in (result.metric, *result.metrics)))
    for aggregation in aggregations:
        fields = [row["scorers"][aggregation.scorer] for row in rows if aggregation.scorer in row["scorers"]]
        scores = Scores(aggregation.scorer, fields, found.notes)
        try:
            found.add(aggregation.scorer, aggregation.numbers(scores))
        except NoValue as reason:
            name = aggregation.metric.named(aggregation.default_name, aggregation.metric.type)
            scores.note("left_out", f"{aggregation.scorer}.{name}", str(reason))
        # The board shows only one table, so use the first.
        if scores.table is not None and not found.classes:
            found.classes, found.confusion = scores.table
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
    """Return the details of every scored row, including all repeats, ordered by example id.

    With ``excluded``, include rows that an action excluded, since judges graded those rows, too.
    """
    wanted = [each for each in results if each.is_scored or (excluded and each.status == "excluded")]
    kept = sorted(wanted, key=lambda result: result.id)
    repeats = [repeat for result in kept for repeat in result.details.get("repeats", [result.details])]
    rows = [row for repeat in repeats for row in repeat.get("rows", [repeat])]
    return [row for row in rows if "scorers" in row and (excluded or "excluded" not in row)]


def _computed(snippet: Snippet, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, float]]:
    returned = snippet([attributes(dict(each)) for each in rows])
    try:
        numbers = plain(returned)
    except ValueError as error:
        raise ScoringError(f"{snippet.name} returned an invalid metric: {error}") from None
    if not isinstance(numbers, dict) or not all(isinstance(each, int | float) for each in numbers.values()):
        raise ScoringError(f"{snippet.name} returned {returned!r:.80}; expected a mapping of names to numbers")
    return [(name, float(value)) for name, value in numbers.items()]


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """The rule that determines the score of each row and of the task.

    ``scorer`` is the first scorer with purpose ``score``, or None. ``field`` names the field that holds every row's
    score, or is None. If ``open`` is true, the field that holds the score depends on the row. ``named`` is the only
    field that ``mean`` metrics use, or "". ``labels`` are fields that metrics compare with each other. If ``measures``
    is true, the task has metrics, so rows may lack a score. ``score_metric`` names the metric that is the task's score,
    or is "".
    """

    scorer: Scorer | None
    field: str | None = None
    open: bool = False
    named: str = ""
    labels: frozenset[str] = frozenset()
    measures: bool = False
    score_metric: str = ""

    @property
    def has_score(self) -> bool:
        """True if the task may have a score; its rows may still yield none."""
        return self.field is not None or self.open or bool(self.score_metric)

    def field_of(self, fields: Mapping[str, Any]) -> str | None:
        """Return the field with a row's score, or None for a row without a score.

        Raises ScoringError if the scorer has no metrics and it is unclear which field to choose. A field that is null
        in this row may hold the score in other rows, so it remains a candidate.
        """
        if not self.open:
            return self.field
        candidates = [name for name, value in fields.items() if is_share(value)]
        empty = [name for name, value in fields.items() if value is None]
        if len(candidates) == 1 and not empty and candidates[0] not in self.labels:
            return candidates[0]
        if self.named in candidates or self.named in empty:
            return self.named
        if self.measures:
            return None
        raise ScoringError(f"{_which(candidates, empty, fields)}; {_WAYS_OUT}")


def score_rule(scorers: Sequence[Scorer]) -> ScoreRule:
    """Return the rule for rows that ``scorers`` score; a scorer with purpose ``qa`` never gives the score."""
    scorer = next((each for each in scorers if each.model.purpose == "score"), None)
    if scorer is None:
        return ScoreRule(None, measures=any(each.model.metrics for each in scorers))
    model = scorer.model
    metrics = model.metrics or ()
    means = {metric.field for metric in metrics if isinstance(metric, FieldMetric) and metric.type == "mean"}
    named = means.pop() if len(means) == 1 else ""
    field = model.score_field
    if field is None and scorer.candidates is not None:
        only = scorer.candidates[0] if len(scorer.candidates) == 1 else None
        field = only or (named if named in scorer.candidates else None)
    return ScoreRule(
        scorer,
        field,
        open=field is None and scorer.candidates is None,
        named=named,
        labels=frozenset(
            field for metric in metrics for key, field in metric.fields.items() if key in ("field_gt", "field_pred")
        ),
        measures=bool(metrics),
        score_metric=model.score_metric or "",
    )


def check_rule(scorers: Sequence[Scorer], aggregations: Sequence[Aggregation]) -> Iterator[Fault]:
    """Yield the errors that would leave rows with neither a score nor metrics, and the settings that have no effect."""
    decision = score_rule(scorers)
    for number, scorer in enumerate(scorers):
        here: Keys = (*_SCORERS, number)
        if scorer is decision.scorer:
            yield from _check_decisive(decision, scorer, here, aggregations)
        elif scorer.model.score_metric is not None:
            yield Fault((*here, "score_metric"), "bad_value", "only the first scorer of purpose 'score' can have one")
    if decision.scorer is None and not decision.measures:
        there = ", ".join(f"{scorer.key} ({', '.join(scorer.fields or ('?',))})" for scorer in scorers)
        detail = f"no scorer has the purpose 'score' or metrics, so no row would be scored; there is {there}"
        yield Fault(_SCORERS, "missing_required", detail)


def _check_decisive(
    decision: ScoreRule, scorer: Scorer, here: Keys, aggregations: Sequence[Aggregation]
) -> Iterator[Fault]:
    scoreless = decision.field is None and not decision.open
    if scoreless and not decision.measures:
        detail = f"{_which(scorer.candidates or (), (), scorer.fields or ())}; {_WAYS_OUT}, or purpose: qa"
        yield Fault((*here, "score_field"), "missing_required", detail)
    if scoreless and scorer.model.threshold is not None:
        yield Fault((*here, "threshold"), "bad_value", "no field is the score of a row, so no threshold applies")
    name = scorer.model.score_metric
    if name is None:
        return
    at = (*here, "score_metric")
    names = [each.names for each in aggregations if each.scorer == scorer.key]
    # The names of some metrics are known only after the computation.
    known = [each for some in names for each in some] if all(names) else None
    if not decision.measures:
        yield Fault(at, "bad_value", "the scorer has no metrics to choose from")
    elif decision.field is not None:
        yield Fault(at, "bad_value", f"the score is the mean of the field {decision.field!r}; remove score_metric")
    elif known is not None and name not in known:
        yield Fault(at, "bad_value", f"the scorer has no metric {name!r}{nearest(name, known, 'there is')}")


def score_of_task(
    decision: ScoreRule, rows: Sequence[Mapping[str, Any]], metrics: Mapping[str, float], left_out: Mapping[str, str]
) -> float | None:
    """Return the value of ``score_metric`` for a task whose rows have no score, or None if the task does not set it.

    ``metrics`` maps the deciding scorer's metrics to values, and ``left_out`` says why some metrics have no value.
    Raises ScoringError if rows took their scores from different fields, or if the metric is not in [0, 1].
    """
    fields = sorted({str(row.get("score_field", "no field")) for row in rows})
    if len(fields) > 1:
        raise ScoringError(f"rows took their score from different fields: {', '.join(fields)}; set score_field")
    name, scorer = decision.score_metric, decision.scorer
    if not name or scorer is None or not rows:
        return None
    if "score_field" in rows[0]:
        raise ScoringError(f"score_metric {name!r}: the score of each row is {fields[0]}; remove score_metric")
    value = metrics.get(name)
    if value is None:
        why = left_out.get(f"{scorer.key}.{name}") or f"there is {', '.join(metrics) or 'none'}"
        raise ScoringError(f"score_metric {name!r}: the scorer {scorer.key!r} has no such metric; {why}")
    if not 0 <= value <= 1:
        raise ScoringError(f"score_metric {name!r} is {value!r}; expected a number in [0, 1]")
    return value


def _which(candidates: Sequence[str], empty: Sequence[str], fields: Mapping[str, Any] | Sequence[str]) -> str:
    if not candidates and not empty:
        return f"no field is a boolean or a number in [0, 1]; there is {', '.join(fields)}"
    possible = [*candidates, *(f"{name} (null here)" for name in empty)]
    if len(possible) > 1:
        return f"more than one field can be the score: {', '.join(possible)}"
    return f"no field is a boolean or a number in [0, 1]; {possible[0]}"
