"""Choose the scorer and the field that give a row its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import ScoringError, nearest
from pytest_lmeval.formats.declarative.faults import Fault
from pytest_lmeval.formats.declarative.models.metrics import FieldMetric
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.yaml.document import Keys
from pytest_lmeval.numbers import is_share

if TYPE_CHECKING:
    from pytest_lmeval.formats.declarative.aggregate import Aggregation

_SCORERS: Keys = ("definition", "scorers")
_WAYS_OUT = "set score_field, or give the scorer metrics"


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """The rule that gives the rows of a task their score.

    ``scorer`` is the first one for scoring, or None. ``field`` is the score of every row; None if no field is, or if it
    depends on the fields of the row (``open``). ``named`` is the one field that a ``mean`` in the metrics names, or "".
    ``labels`` are fields that metrics compare with each other. ``measures``: rows without a score are measured, because
    their task has metrics. ``score_metric`` names the metric that is the score of the task, or is "".
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
        """True if the task may have a score; only scoring its rows can rule it out."""
        return self.field is not None or self.open or bool(self.score_metric)

    def field_of(self, fields: Mapping[str, Any]) -> str | None:
        """Return the field that is the score of a row, None for a row that is measured; raise ScoringError.

        A field that is null may be the score of other rows, so a candidate beside it does not count as the only one.
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
    """Return the rule for rows that ``scorers`` score; a scorer with the purpose ``qa`` never decides."""
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
    """Yield the reasons why no row could be scored or measured, and settings without effect."""
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
    known = _known_names([each for each in aggregations if each.scorer == scorer.key])
    if not decision.measures:
        yield Fault(at, "bad_value", "the scorer has no metrics to choose from")
    elif decision.field is not None:
        yield Fault(at, "bad_value", f"the score is the mean of the field {decision.field!r}; remove score_metric")
    elif known is not None and name not in known:
        yield Fault(at, "bad_value", f"the scorer has no metric {name!r}{nearest(name, known, 'there is')}")


def score_of_task(
    decision: ScoreRule, rows: Sequence[Mapping[str, Any]], metrics: Mapping[str, float], left_out: Mapping[str, str]
) -> float | None:
    """Return the score of a task whose ``rows`` are measured, by its ``score_metric``; None without one.

    ``metrics`` has the metrics of the deciding scorer, ``left_out`` the reasons why some have no value. Raise
    ScoringError if the rows took their scores from different fields, or the metric has no value in [0, 1].
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


def _known_names(aggregations: Sequence[Aggregation]) -> list[str] | None:
    """Return the names of the metrics; None if they are known only after the computation."""
    names = [each.names for each in aggregations]
    return [name for each in names for name in each] if all(names) else None


def _which(candidates: Sequence[str], empty: Sequence[str], fields: Mapping[str, Any] | Sequence[str]) -> str:
    if not candidates and not empty:
        return f"no field is a boolean or a number in [0, 1]; there is {', '.join(fields)}"
    possible = [*candidates, *(f"{name} (null here)" for name in empty)]
    if len(possible) > 1:
        return f"more than one field can be the score: {', '.join(possible)}"
    return f"no field is a boolean or a number in [0, 1]; {possible[0]}"
