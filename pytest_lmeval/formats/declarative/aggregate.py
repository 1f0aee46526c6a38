"""Compute the metrics of a task over the scores of all its rows, every repeat included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.aggregations import Classes, Confusion, NoValue, Scores
from pytest_lmeval.formats.declarative.decision import ScoreRule, score_of_task
from pytest_lmeval.formats.declarative.models.metrics import Metric
from pytest_lmeval.formats.declarative.scoring.judges import judge_notes
from pytest_lmeval.formats.declarative.scoring.outcome import Scorer
from pytest_lmeval.formats.declarative.snippets import Snippet, attributes, plain
from pytest_lmeval.types import ExampleResult


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One metric of one scorer; ``snippet`` is the function of a metric in Python."""

    scorer: str
    metric: Metric
    default_name: str = ""
    snippet: Snippet | None = None

    @property
    def names(self) -> list[str]:
        """The names of the metric's numbers on the board; none if only the computation reveals them."""
        return self.metric.names(self.default_name)

    def numbers(self, scores: Scores) -> dict[str, float]:
        """Return the metric's numbers by name; raise NoValue if the rows give none."""
        if self.snippet is not None:
            return {self.metric.prefixed(name): value for name, value in _computed(self.snippet, scores.rows)}
        if not scores.rows:
            raise NoValue("no row was scored")
        return self.metric.aggregate(scores, self.default_name)


@dataclass(slots=True)
class _Metrics:
    """The metrics computed so far; ``taken`` are the names of the means that every task has."""

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
    """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` over the rows scored and not excluded.

    A task whose rows are measured has a ``score`` if ``score_metric`` names one of its metrics. A metric without a
    value is skipped, and ``notes.left_out`` gives the reason.
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
        # The board has space for one table: use the first.
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
    """Return the details of every row of every repeat of the scored examples, in the order of their ids.

    With ``excluded``, include rows that an action excluded: a judge has judged them, too.
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
