"""Build the leaderboard, which holds a run's results and totals."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.aggregations import (
    CENTERED,
    Breakdown,
    breakdown,
    calibration,
    core_score,
    scores_of,
    spent,
)
from pytest_lmeval.leaderboard.details import (
    GRADED,
    METRIC,
    Trace,
    is_function,
    notes_of,
    traces,
)
from pytest_lmeval.leaderboard.rows import TaskInfo, TaskRow, as_in_data, make_row
from pytest_lmeval.numbers import sound_amounts, total_usage
from pytest_lmeval.redaction import redact_options
from pytest_lmeval.stats.intervals import mean, overall_bounds
from pytest_lmeval.types import COST_UNKNOWN, ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.task import Task

_NOTHING: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
_DETAILS, _STATUS, _METRIC = map(attrgetter, ("outcome.details", "outcome.status", "question.metric"))
_CUT_OFF, _UNPARSED, _IS_SCORED = map(attrgetter, ("answer.cut_off", "outcome.unparsed", "is_scored"))
SCHEMA = "pytest-lmeval/leaderboard/2"
RERUN_USAGE = "rerun_usage"
"""The manifest's entry with the usage of attempts that a plugin repeated, which no result includes."""
UNPRICED = "unpriced"
"""The manifest's entry with the names of judges and simulated users whose prices are unknown."""
SERVICE = "service"
"""The manifest's entry with the totals of requests outside examples."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts about a run other than its results.

    ``missing`` lists the collected examples that never reported a result. ``selection`` describes the selected
    examples; it is empty if all examples were selected. ``floors`` holds the minimum scores for tasks and for
    ``overall``, and ``limits`` caps times, requests, tokens and costs. ``interruptions`` gives the reasons why the run
    did not finish, other than missing examples. ``failures`` describes examples whose tests failed for a reason other
    than the score. ``reruns`` counts the attempts that a plugin repeated. ``mode`` is the gate's mode, or "" if it is
    unknown; the mode decides whether low scores are ``failed`` or ``below``. ``remarks`` are sentences about the whole
    run, such as options without effect.
    """

    timestamp: str
    adapter: str
    adapter_options: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[str] = ()
    skipped: int = 0
    max_errors: float = 0
    selection: Mapping[str, Any] = field(default_factory=dict)
    bad_records: Sequence[str] = ()
    gate: Mapping[str, Any] | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    finished: bool = True
    floors: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    interruptions: Sequence[str] = ()
    failures: Sequence[str] = ()
    reruns: int = 0
    mode: str = ""
    remarks: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Hide secrets in the adapter's options, even if the board comes from someone else's file."""
        object.__setattr__(self, "adapter_options", redact_options(self.adapter_options))


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A run's rows, sorted by task, and its overall numbers."""

    facts: RunFacts
    tasks: tuple[TaskRow, ...]
    complete: bool
    overall_score: float | None
    counts: Mapping[str, int]
    categories: Breakdown
    digest: str
    usage: Mapping[str, float] = field(default_factory=dict)
    overall_ci95: tuple[float, float] | None = None
    core_score: float | None = None
    calibration: Mapping[str, float | int] = field(default_factory=dict)
    spent: Mapping[str, float | int] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    served_by: Mapping[str, int] = field(default_factory=dict)

    def to_json(self, *, per_example: bool = False) -> dict[str, Any]:
        """Return the board as in leaderboard.json, with the keys in the documented order."""
        facts = self.facts
        board: dict[str, Any] = {
            "schema": SCHEMA,
            "timestamp": facts.timestamp,
            "adapter": facts.adapter,
            "adapter_options": dict(facts.adapter_options),
            "complete": self.complete,
            "overall_score": self.overall_score,
            "overall_ci95": self.overall_ci95,
            **({"core_score": self.core_score} if any(CENTERED in row.metrics for row in self.tasks) else {}),
            "counts": dict(self.counts),
            "selection": dict(facts.selection),
            "tasks": [row.to_json(per_example=per_example) for row in self.tasks],
            **({"groups": self.groups()} if any("groups" in row.notes for row in self.tasks) else {}),
            "categories": dict(self.categories),
            "usage": dict(self.usage),
            "spent": dict(self.spent),
            "served_by": dict(self.served_by),
            "calibration": dict(self.calibration),
            "quarantined": self.quarantined(),
            "bad_records": list(facts.bad_records),
            "remarks": list(self.remarks),
            "interruptions": list(facts.interruptions),
            "gate": None if facts.gate is None else dict(facts.gate),
            "manifest": dict(facts.manifest),
            "digest": self.digest,
        }
        return {key: value for key, value in board.items() if key not in _IF_ANY or value}

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the scores of task groups; see :func:`~pytest_lmeval.leaderboard.groups.group_scores`."""
        from pytest_lmeval.leaderboard.groups import group_scores

        return group_scores(self.tasks)

    def quarantined(self) -> list[dict[str, str]]:
        """Return the task, id, last day (``until``) and reason for every quarantined example."""
        results = (result for row in self.tasks for result in row.per_example if result.status == "quarantined")
        return [{"task": result.task, "id": result.id, **result.quarantine} for result in results]


_IF_ANY = frozenset(
    (
        *("selection", "usage", "spent", "served_by", "calibration", "quarantined", "bad_records", "remarks"),
        *("interruptions", "gate"),
    )
)


def aggregate(
    infos: Sequence[TaskInfo], results: Sequence[ExampleResult], task_of: Callable[[TaskInfo], Any]
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return the aggregates by task, and a message for each task whose aggregation failed.

    ``task_of`` loads a TaskInfo's task, because pytest-xdist's controlling process does not collect tasks.
    """
    found: dict[str, Mapping[str, Any]] = {}
    failures = []
    for info in (each for each in infos if each.aggregates):
        try:
            own = [result for result in results if result.task == info.name and result.decides]
            found[info.name] = task_of(info).aggregate(own)
        except KeyboardInterrupt:
            raise
        # After pytest.skip, sys.exit or another error in a task's code, the run still needs its board.
        except BaseException as error:
            failures.append(f"{info.name}: its aggregation failed: {type(error).__name__}: {error}")
    return found, failures


def info_of(task: Task, path: str | None = None, *, selected: int | None = None) -> TaskInfo:
    """Return a task's TaskInfo, with ``path`` as the file that reports show."""
    count = len(task.examples)
    return TaskInfo(
        task.name,
        task.path.as_posix() if path is None else path,
        task.sha256,
        task.metric,
        count,
        count if selected is None else selected,
        random_baseline=task.random_baseline,
        aggregates=task.aggregates,
        score_metric=task.score_metric,
        dataset=dict(task.dataset),
        config=dict(task.config),
        key=task.key,
        display_name=task.display_name,
        numbered=task.numbered,
    )


def failures_of(board: Leaderboard) -> list[ExampleResult]:
    """Return the failed examples in data order, but only the first example of each refused task."""
    found: list[ExampleResult] = []
    named: set[str] = set()
    for result in as_in_data(each for row in board.tasks for each in row.per_example if each.is_failed):
        if result.error not in named:
            found.append(result)
        if result.error and any(result.error in each for each in board.facts.interruptions):
            named.add(result.error)
    return found


def build_board(
    infos: Iterable[TaskInfo],
    results: Iterable[ExampleResult],
    facts: RunFacts,
    aggregates: Mapping[str, Mapping[str, Any]] = _NOTHING,
) -> Leaderboard:
    """Build a run's board, with a row even for a task that has only results or only a TaskInfo.

    ``aggregates`` is the first value that :func:`aggregate` returns.
    """
    results = [*results]
    of_functions = traces(results) if METRIC in map(_METRIC, results) else []
    graded = {result.question.task for result, steps in of_functions if any("verdict" in step for step in steps)}
    rows = tuple(_rows(infos, results, facts.floors, aggregates, graded))
    everything = [result for row in rows for result in row.per_example]
    deciding = [result for result in everything if result.decides]
    counts = _counts(everything, facts)
    complete = _is_complete(rows, counts, facts)
    is_whole = complete and "shard" not in facts.selection
    of_core = [row for row in rows if CENTERED in row.metrics]
    overall, bounds = _overall(rows) if is_whole else (None, None)
    notes = notes_of(of_functions, facts.adapter) if of_functions else []
    model = facts.manifest.get("model")
    if isinstance(model, Mapping) and isinstance(remarks := model.get("remarks"), list):
        notes += map(str, remarks)
    usage = run_usage([*(result.answer.usage for result in everything), rerun_usage(facts), _outside(facts)])
    if usage.get(COST_UNKNOWN) and isinstance(names := facts.manifest.get(UNPRICED), list):
        notes.append(
            f"the cost is a lower bound: no prices for {', '.join(map(str, names))} (judge or simulated user); add "
            "price_input and price_output to pyproject.toml, under [tool.lmeval.prices.MODEL]"
        )
    return Leaderboard(
        facts=facts,
        tasks=rows,
        complete=complete,
        overall_score=overall,
        counts=counts,
        categories=breakdown([(result.category, result) for result in deciding if result.question.category]),
        digest=digest(everything),
        usage=usage,
        overall_ci95=bounds,
        core_score=core_score(of_core) if is_whole and of_core else None,
        calibration=calibration(deciding) if any(map(_DETAILS, deciding)) else {},
        spent=rows[0].spent if len(rows) == 1 else spent(everything),
        remarks=tuple(dict.fromkeys((*facts.remarks, *notes))),
        served_by=served_by(everything, of_functions),
    )


def _rows(
    infos: Iterable[TaskInfo],
    results: Iterable[ExampleResult],
    floors: Mapping[str, float],
    aggregates: Mapping[str, Mapping[str, Any]],
    graded: Collection[str],
) -> Iterator[TaskRow]:
    known = {info.name: info for info in infos}
    by_task: dict[str, list[ExampleResult]] = defaultdict(list)
    for result in results:
        by_task[result.question.task].append(result)
    for name in sorted(known.keys() | by_task):
        info, own = known.get(name) or TaskInfo(name, ""), by_task[name]
        if floors:
            from pytest_lmeval.leaderboard.scores import with_floors

            info = with_floors(info, floors, known)
        made = aggregates.get(name, {})
        if not made and own and (name in graded or own[0].question.metric in GRADED):
            from pytest_lmeval.leaderboard.judged import judged

            made = judged(own)
        floor = floors.get(info.key, info.min_score) if info.key else info.min_score
        yield make_row(info, own, floors.get(name, floor), made)


def _is_complete(rows: Sequence[TaskRow], counts: Mapping[str, int], facts: RunFacts) -> bool:
    errors = counts["errors"] + counts["timeouts"]
    # A run without any score measured nothing, so it must not look complete.
    unscored = counts["excluded"] or counts.get("quarantined") or errors
    if not facts.finished or facts.missing or errors > facts.max_errors or (unscored and not counts["scored"]):
        return False
    return not any(row.problem for row in rows)


def _overall(rows: Sequence[TaskRow]) -> tuple[float | None, tuple[float, float] | None]:
    # Skip rows that have no score by design; if another row lacks its score, the overall score does not exist.
    inside = [row for row in rows if not row.is_outside]
    scores = [row.score for row in inside if row.score is not None]
    if not scores or len(scores) < len(inside):
        return None, None
    return mean(scores), overall_bounds([scores_of(row.per_example) for row in inside])


def digest(results: Iterable[ExampleResult]) -> str:
    """Return a SHA-256 of the results; their order, the number of processes and the batch size do not affect it.

    The hashed text consists of sorted lines ``[task, id, hash, [outputs], score]`` in compact ASCII JSON, joined by
    newlines. For an eval function, ``score`` is an object with its named scores and, under ``function``, its overall
    score.
    """
    # Outputs may be large, so do not keep all lines. Sort the lines by their beginnings, up to the hash, and hash one
    # group of equal beginnings at a time.
    results = [*results]
    heads = [_encode(((asked := each.question).task, asked.id, asked.hash))[:-1] for each in results]
    found, between = hashlib.sha256(), ""
    for head, places in groupby(sorted(range(len(heads)), key=heads.__getitem__), heads.__getitem__):
        same = [results[place] for place in places]
        lines = [f"{head},{_encode((each.answer.outputs, _scores(each)))[1:]}" for each in same]
        found.update((between + "\n".join(sorted(lines))).encode("ascii"))
        between = "\n"
    return found.hexdigest()


def _scores(result: ExampleResult) -> Any:
    return {METRIC: result.score, **result.metrics} if is_function(result) else result.score


def _counts(results: Sequence[ExampleResult], facts: RunFacts) -> dict[str, int]:
    statuses = Counter(map(_STATUS, results))
    more = {name: statuses[name] for name in ("measured", "quarantined")}
    more["cut_off"] = sum(map(_CUT_OFF, results))
    return {
        "collected": len(results) + len(facts.missing) + facts.skipped,
        "scored": sum(map(_IS_SCORED, results)),
        "errors": statuses["error"],
        "timeouts": statuses["timeout"],
        "excluded": statuses["excluded"],
        "skipped": facts.skipped,
        "missing": len(facts.missing),
        "unparsed": sum(map(_UNPARSED, results)),
        "below": statuses["below"],
        **{name: count for name, count in more.items() if count},
    }


def rerun_usage(facts: RunFacts) -> Mapping[str, float]:
    """Return the usage of attempts that a plugin repeated."""
    return sound_amounts(facts.manifest.get(RERUN_USAGE))


def _outside(facts: RunFacts) -> Mapping[str, float]:
    """Return the usage of requests that belong to no example."""
    service = facts.manifest.get(SERVICE)
    return sound_amounts(service.get("usage") if isinstance(service, Mapping) else None)


def run_usage(usages: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of each amount; the order of ``usages`` does not affect the sums."""
    return dict(sorted(total_usage(usages, lambda amounts: round(math.fsum(amounts), 12)).items()))


def served_by(results: Sequence[ExampleResult], of_functions: Sequence[Trace] | None = None) -> dict[str, int]:
    """Count the model's answers, including answers to eval functions, by the model name that the server reported.

    ``of_functions`` holds the traces of ``results`` if the caller has already read them.
    """
    counts: Counter[str] = Counter()
    for result in results:
        for name, count in result.answer.served_by.items():
            counts[name] += count
    for _, steps in traces(results) if of_functions is None else of_functions:
        counts.update(str(step["served_by"]) for step in steps if "served_by" in step and step.get("kind") == "request")
    return dict(counts)


_encode = compact_encoder(allow_nan=True, sort_keys=True)
