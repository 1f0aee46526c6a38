"""Build the leaderboard's rows, each from one task's results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from operator import attrgetter, lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.aggregations import (
    Breakdown,
    by_subject,
    centered_metric,
    confidence_metrics,
    means_by_metric,
    repeat_errors,
    repeat_metrics,
    scores_of,
    spent,
    subject_mean,
    text_metrics,
)
from pytest_lmeval.leaderboard.details import BY_NAME, CHECKS, METRIC, mixed_decisions, models_of, options_in
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.stats.intervals import mean, score_bounds, standard_error
from pytest_lmeval.types import ExampleResult, read_as_own

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.classes import ClassRow
    from pytest_lmeval.leaderboard.scores import ScoreRow

# To sort ids by the numbers in them, ex-2 before ex-10, pad or cut each number to twenty digits.
_NUMBER = re.compile(r"\d+")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_CATEGORY, _METRIC, _STATUS = map(attrgetter, ("question.category", "question.metric", "outcome.status"))
_CUT_OFF, _UNPARSED, _PREDICTIONS = map(attrgetter, ("answer.cut_off", "outcome.unparsed", "outcome.predictions"))
_METRICS, _PLACE = attrgetter("outcome.metrics"), attrgetter("question.line", "question.place")


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """The facts about a task that are known before its examples run.

    ``available`` is the number of valid records in the file, and ``selected`` is the number of records that the run
    should score. Each number is None if the process with that number was lost. ``random_baseline`` is the score of
    random guesses, if the task reports a centred score. ``dataset`` holds facts about the task's data, such as path,
    sha256 and revision. ``aggregates`` is True if the task itself aggregates its results. ``score_metric`` names the
    aggregation that is the task's score if its examples are only measured. ``whole`` is True if the run selects
    subjects but the task has no subjects, so that all its examples are selected. ``config`` holds the values of the
    task's parameters. ``key`` is an alternative name of the task in options, and ``display_name`` is its title.
    ``min_score`` is the floor that the task itself sets. In a sharded run, ``shard`` holds the sorted ``ids`` of the
    task's examples in all shards, and a ``sha256`` of their ids and prompts. ``scores`` maps the names of scores to
    their ``threshold`` or ``min_score``. ``numbered`` is True if the examples' ids are row numbers.
    """

    name: str
    path: str
    sha256: str | None = None
    metric: str = ""
    available: int | None = None
    selected: int | None = None
    bad_records: tuple[str, ...] = ()
    random_baseline: float | None = None
    aggregates: bool = False
    score_metric: str = ""
    dataset: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    display_name: str = ""
    min_score: float | None = None
    shard: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTask:
    """The facts about a row's task, including its floor."""

    task: str
    path: str
    sha256: str | None
    metric: str
    min_score: float | None
    dataset: Mapping[str, Any]
    config: Mapping[str, Any]
    key: str
    display_name: str
    numbered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """The number of a row's examples by outcome."""

    correct: int
    total: int
    errors: int
    timeouts: int
    excluded: int
    unparsed: int
    cut_off: int
    quarantined: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNumbers:
    """A row's scores and other numbers. Each score is a mean over the scored examples, or None without scored examples.

    If only aggregations score some examples, ``measured`` holds the number of these ``examples`` and the
    ``score_metric``, the aggregation that is the task's score, or None. ``models`` counts, by model, how often eval
    functions' requests ``asked`` for the model and how often it ``answered``. ``options`` counts, by option, the values
    in the requests of applications' clients. ``scores`` holds the sub-rows of examples with several named scores; see
    :mod:`~pytest_lmeval.leaderboard.scores`.
    """

    score: float | None
    stderr: float | None
    ci95: tuple[float, float] | None
    latency_ms: float | None
    threshold: float | None
    metrics: Mapping[str, float | None]
    subjects: Breakdown
    repeats: Mapping[str, float | int | None]
    classes: Mapping[str, ClassRow]
    confusion: Mapping[str, Mapping[str, int]]
    calibration: Mapping[str, float | int]
    notes: Mapping[str, Any]
    measured: Mapping[str, Any]
    spent: Mapping[str, float | int]
    models: Mapping[str, Mapping[str, int]]
    options: Mapping[str, Mapping[str, int]]
    scores: Mapping[str, ScoreRow]


if TYPE_CHECKING:

    class _RowFields(RowTask, RowCounts, RowNumbers):  # type: ignore[misc]  # no instance is ever made
        """The fields of RowTask, RowCounts and RowNumbers, for type checkers."""

else:
    _RowFields = object


@dataclass(frozen=True, slots=True)
class TaskRow(_RowFields):
    """One task's line on the leaderboard.

    The fields of ``about``, ``counts`` and ``numbers`` are also the row's attributes, so ``row.score`` is
    ``row.numbers.score``.
    """

    about: RowTask
    counts: RowCounts
    numbers: RowNumbers
    per_example: Sequence[ExampleResult] = field(default=(), repr=False)

    if TYPE_CHECKING:

        def __init__(
            self, about: RowTask, counts: RowCounts, numbers: RowNumbers, per_example: Sequence[ExampleResult] = ()
        ) -> None: ...

    @property
    def is_outside(self) -> bool:
        """True if the overall score ignores the row: it has no score by design, or all examples are in quarantine."""
        return self.is_unscored or (self.score is None and 0 < self.quarantined == self.total - self.excluded)

    @property
    def is_unscored(self) -> bool:
        """True if the row has no score by design, because its examples are measured and no aggregation is its score."""
        return bool(self.measured) and self.score is None and not self.measured["score_metric"]

    @property
    def problem(self) -> str:
        """The reason why the row's score is invalid or unexpectedly missing, or ""."""
        if not self.measured:
            return mixed_decisions(self.per_example) if self.metric == METRIC else ""
        scored = sum(result.score is not None for result in self.per_example)
        if scored:
            return (
                f"{self.measured['examples']} example(s) are measured and {scored} have a score: they are not scored "
                "in the same way; set score_field"
            )
        name = self.measured["score_metric"]
        return f"no score: its metric {name!r} was not computed" if name and self.score is None else ""

    def to_json(self, *, per_example: bool = False) -> dict[str, Any]:
        """Return the row as in leaderboard.json."""
        fields = {name: getattr(self, name) for name in _ROW_FIELDS}
        for name in _IF_ANY:
            if not fields[name]:
                del fields[name]
        if per_example:
            fields["per_example"] = [_example_record(result) for result in self.per_example]
        return fields


for _group, _kind in (("about", RowTask), ("counts", RowCounts), ("numbers", RowNumbers)):
    read_as_own(TaskRow, _group, _kind)
_IF_ANY = (
    *("repeats", "classes", "confusion", "calibration", "notes", "dataset", "measured", "config", "key"),
    *("display_name", "cut_off", "quarantined", "spent", "models", "options", "scores"),
    "numbered",
)
_ROW_FIELDS = (
    *("task", "path", "sha256", "metric", "score", "stderr", "ci95", "correct", "total", "errors", "timeouts"),
    *("excluded", "unparsed", "latency_ms", "threshold", "min_score", "metrics", "subjects"),
    *_IF_ANY,
)


def rows_called(name: str, rows: Iterable[TaskRow]) -> list[TaskRow]:
    """Return the row of the task ``name``, or else all rows with the key ``name``, which a task's variants share."""
    found = list(rows)
    return [row for row in found if row.task == name] or [row for row in found if row.key and row.key == name]


def make_row(
    info: TaskInfo,
    results: Sequence[ExampleResult],
    floor: float | None = None,
    aggregates: Mapping[str, Any] = _NOTHING,
) -> TaskRow:
    """Build a task's row from its results, given in any order.

    ``floor`` is the minimum score. ``aggregates`` holds values that the task computed from all its results: further
    ``metrics``, ``notes``, replacements for ``classes`` and ``confusion``, and the ``score`` of measured examples.
    """
    everything, results = results, [result for result in results if result.decides]
    statuses = Counter(map(_STATUS, results))
    metrics = {*map(_METRIC, everything)}
    scores: Mapping[str, ScoreRow] = {}
    if metrics & BY_NAME and (info.scores or CHECKS in metrics or max(map(len, map(_METRICS, everything))) > 1):
        from pytest_lmeval.leaderboard.scores import score_rows

        scores = score_rows(info, results)
        # A floor under the name of the decisive score is the task's floor.
        floor = next((each["min_score"] for each in scores.values() if floor is None and "decides" in each), floor)
    about = RowTask(
        task=info.name,
        metric=info.metric or (metrics.pop() if len(metrics) == 1 else "mixed"),
        min_score=floor,
        **{
            name: getattr(info, name)
            for name in ("path", "sha256", "dataset", "config", "key", "display_name", "numbered")
        },
    )
    counts = RowCounts(
        correct=sum(map(reaches, results)),
        total=len(everything),
        errors=statuses["error"],
        timeouts=statuses["timeout"],
        excluded=statuses["excluded"],
        unparsed=sum(map(_UNPARSED, results)),
        cut_off=sum(map(_CUT_OFF, everything)),
        quarantined=len(everything) - len(results),
    )
    measured = {"examples": statuses["measured"], "score_metric": info.score_metric or None}
    numbers = _numbers(info, results, everything, aggregates, measured if statuses["measured"] else {}, scores)
    return TaskRow(about, counts, numbers, sorted(everything, key=_by_id))


def in_data(result: ExampleResult) -> tuple[str, int, int, str, str]:
    """Return a key that sorts results by task and then in data order, or by id if the data order is unknown."""
    return (result.question.task, result.question.line, result.question.place, *_by_id(result))


def are_in_data(results: Iterable[ExampleResult]) -> bool:
    """Return True if a task's results are in data order."""
    places = [*map(_PLACE, results)]
    return all(map(lt, places, places[1:]))


def as_in_data(results: Iterable[ExampleResult]) -> list[ExampleResult]:
    """Return the results sorted by task and then in data order."""
    return sorted(results, key=in_data)


def _by_id(result: ExampleResult) -> tuple[str, str]:
    id = result.question.id
    return _NUMBER.sub(lambda number: number[0][-20:].zfill(20), id), id


def _numbers(
    info: TaskInfo,
    results: Sequence[ExampleResult],
    everything: Sequence[ExampleResult],
    aggregates: Mapping[str, Any],
    measured: Mapping[str, Any],
    by_name: Mapping[str, ScoreRow],
) -> RowNumbers:
    scores, clusters = scores_of(results)
    latencies = [result.latency_ms for result in everything if result.latency_ms is not None]
    thresholds = {result.threshold for result in results if result.status != "measured"}
    has_categories = any(map(_CATEGORY, results))
    subjects = by_subject(results) if has_categories else {}
    detailed = [result for result in results if result.details]
    repeated = [result for result in detailed if "majority_score" in result.details]
    labels = None
    # Eval functions have no predictions, hence no labels.
    if (detailed or has_categories) and any(map(_PREDICTIONS, results)):
        from pytest_lmeval.leaderboard.classes import by_label

        labels = by_label(results)
    score = mean(scores) if scores else aggregates.get("score")
    of_functions = everything if METRIC in map(_METRIC, everything) else []
    return RowNumbers(
        score=score,
        stderr=standard_error(scores, clusters),
        ci95=score_bounds(scores, clusters),
        latency_ms=round(mean(latencies), 3) if latencies else None,
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
        metrics={
            **means_by_metric(results),
            **(repeat_metrics(repeated) if repeated else {}),
            **(subject_mean(subjects) if subjects else {}),
            **({} if info.random_baseline is None else centered_metric(score, info.random_baseline)),
            **(text_metrics(detailed) if detailed else {}),
            **aggregates.get("metrics", {}),
        },
        subjects=subjects,
        repeats=repeat_errors(repeated) if repeated else {},
        classes=aggregates.get("classes") or (labels[0] if labels else {}),
        confusion=aggregates.get("confusion") or (labels[1] if labels else {}),
        calibration=confidence_metrics(detailed) if detailed else {},
        notes=aggregates.get("notes", {}),
        measured=measured,
        spent=spent(everything),
        models=models_of(of_functions) if of_functions else {},
        options=options_in(of_functions).values if of_functions else {},
        scores=by_name,
    )


def _example_record(result: ExampleResult) -> dict[str, Any]:
    several = len(result.outputs) > 1
    record: dict[str, Any] = {
        "id": result.id,
        "prompt": result.prompt,
        "prediction": result.predictions[0] if result.predictions else None,
        "output": result.outputs[0] if result.outputs else None,
        "targets": list(result.targets),
        **{name: getattr(result, name) for name in ("score", "status", "latency_ms", "hash")},
    }
    for name in _RECORDED_IF_ANY if several else _RECORDED_IF_ANY[2:]:
        if value := getattr(result, name):
            record[name] = list(value) if isinstance(value, tuple) else value
    if result.messages:
        record["messages"] = [message.to_json() for message in result.messages]
    return record


_RECORDED_IF_ANY = (
    *("outputs", "predictions", "error", "metrics", "cluster", "details", "item", "must_pass", "scoring_hash", "usage"),
    *("request_ms", "ttft_ms", "cached", "served_by", "quarantine", "thoughts", "cut_off", "exchanges"),
)
