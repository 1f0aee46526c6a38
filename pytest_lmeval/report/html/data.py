"""What the page knows: the board with what only the results tell, and the examples of each task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, zip_longest
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from pytest_lmeval.compact_json import encode
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.rows import are_in_data, in_data
from pytest_lmeval.report.html.examples import (
    Flips,
    ShownPair,
    before_of,
    example_fields,
    flips_of,
    urgency,
)
from pytest_lmeval.report.tables import CATEGORIES, SCORES, change_row, overall_row, page_columns, score_rows
from pytest_lmeval.report.wording import command, rerun_parts
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.report.html.shown import ShownExamples

MAX_EXAMPLES = 10_000
MAX_CHARACTERS = 30_000_000
_SHORTEST_PREFIX = 200
_BINS = 24
# From this ratio of the slowest to the fastest on, equal bins would put almost everything into the first.
_WIDE = 20.0
TAGS = attrgetter("question.tags")
_OF_SCORES = ("kind", "metric", "min_score", "verdict", "old", "ci95")
_QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class ReportData:
    """The data blocks of the page: ``overview`` is a JSON value, ``tasks`` the JSON text of each task's examples."""

    overview: Mapping[str, Any]
    tasks: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Task:
    """One task's results in the order of its file, and what all of its prompts begin with."""

    name: str
    results: Sequence[ExampleResult]
    prefix: str


def report_data(
    board: Mapping[str, Any],
    results: Sequence[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
    shown: ShownExamples | None = None,
) -> ReportData:
    """Return everything the page shows. What does not fit is left out, least telling first, and counted by task.

    ``shown`` keeps what is given of examples.
    """
    gate = dict(board.get("gate") or {})
    of_the_gate = gate.pop("comparison", None)
    comparison = of_the_gate if comparison is None else comparison
    rows = [{key: value for key, value in row.items() if key != "per_example"} for row in board.get("tasks", ())]
    tasks = _tasks([row["task"] for row in rows], results)
    flips = flips_of(results, comparison, baseline)
    by_id = (comparison or {}).get("criteria", {}).get("pair_by") == "id"
    chosen = _choose(tasks, flips, before_of(results, comparison, baseline), by_id=by_id, shown=shown)
    manifest = board.get("manifest", {})
    floor = gate.get("settings", {}).get("floors", {}).get("overall")
    categories = sorted(board.get("categories") or ())
    overview = {
        "schema": board.get("schema", ""),
        "timestamp": board.get("timestamp", ""),
        "columns": [{"label": board.get("adapter", ""), "score": board.get("overall_score")}],
        "picks": {"category": categories, "tag": sorted({*chain.from_iterable(map(TAGS, results))})},
        "board": {**board, "tasks": rows, "gate": gate or None},
        "comparison": _without_examples(comparison),
        "scores": _scores(board, comparison, floor),
        "breakdown": page_columns(CATEGORIES, ()),
        "overall_floor": floor,
        "examples": [_tally(task, held, flips) for task, held in zip(tasks, chosen, strict=True)],
        "latency": latency_facts([ms for result in results if (ms := result.answer.latency_ms) is not None]),
        "command": command(manifest),
        # By task: what goes before the name of an example's item, and the options after it.
        "rerun": {row["task"]: rerun_parts(manifest, str(row["path"])) for row in rows if row.get("path")},
        "has_baseline": bool(baseline) or comparison is not None,
    }
    return ReportData(overview, [encode_task(task.prefix, held) for task, held in zip(tasks, chosen, strict=True)])


def _scores(board: Mapping[str, Any], comparison: Mapping[str, Any] | None, floor: float | None) -> dict[str, Any]:
    """Return columns and rows of the table of scores, each row with its change against the baseline."""
    tasks, overall, found = board.get("tasks", ()), board.get("overall_score"), comparison or {}
    changes = {change["task"]: change_row(change) for change in found.get("tasks", ())}
    rows = [
        {"kind": "task" if "total" in row else "named", **changes.get(row["task"], {}), **row}
        for row in score_rows(tasks)
    ]
    if len(tasks) > 1 and overall is not None:
        pooled = change_row(found["pooled"]) if found.get("pooled") else {}
        whole = overall_row(tasks, overall, board.get("overall_ci95"))
        rows.append({**pooled, **whole, "kind": "overall", "min_score": floor})
    columns = page_columns(SCORES, rows)
    names = (*_OF_SCORES, *map(itemgetter("name"), columns))
    return {
        "columns": columns,
        "rows": [{**{name: row[name] for name in names if name in row}, "under": _is_under(row)} for row in rows],
    }


def _is_under(row: Mapping[str, Any]) -> bool:
    """Return True if the row does not reach its floor."""
    score, floor = row["score"], row.get("min_score")
    return floor is not None and not (score is not None and is_at_least(score, floor))


def _tasks(names: Sequence[str], results: Sequence[ExampleResult]) -> list[_Task]:
    by_task: dict[str, list[ExampleResult]] = {name: [] for name in names}
    for result in results:
        by_task.setdefault(result.task, []).append(result)
    return [
        _Task(
            name,
            sorted(members, key=in_data) if len(members) > 1 and not are_in_data(members) else members,
            common_prefix(members),
        )
        for name, members in by_task.items()
    ]


def common_prefix(results: Sequence[ExampleResult]) -> str:
    """Return what the prompts of all results begin with, whole lines of it, where that is worth to be said once."""
    # The worked examples that all prompts of a task begin with are often nine tenths of the whole ledger.
    if len(results) < 2:
        return ""
    common = results[0].question.prompt
    for result in results:
        # A prompt may have to be read from a file: where the beginning is too short already, the others are not.
        if not (common := _shared_lines(common, result.question.prompt)):
            return ""
    return common


def _shared_lines(one: str, other: str) -> str:
    """Return the whole lines that both texts begin with; "" where those are too short."""
    if not other.startswith(one):
        one = one[: next(place for place, (a, b) in enumerate(zip_longest(one, other)) if a != b)]
    end = one.rfind("\n") + 1
    return one[:end] if end >= _SHORTEST_PREFIX else ""


def _choose(
    tasks: Sequence[_Task],
    flips: Flips,
    before: Mapping[tuple[str, str], ExampleResult],
    *,
    by_id: bool,
    shown: ShownExamples | None,
) -> list[dict[int, str]]:
    def text_of(number: int, place: int) -> str:
        result, prefix = tasks[number].results[place], len(tasks[number].prefix)
        key = result.task, result.id
        pair = ShownPair(result, before.get(key), flips.get(key, ""), by_id) if before or flips else ShownPair(result)
        fields = example_fields(pair, prefix)
        text = encode(fields)
        if shown is not None:
            shown.keep(result, prefix, fields, len(text))
        return text

    return most_telling([_urgencies(flips, task) for task in tasks], text_of, MAX_CHARACTERS)


def most_telling(tasks: Sequence[Iterable[int]], text_of: Callable[[int, int], str], most: int) -> list[dict[int, str]]:
    """Return the encoded examples to embed, by place, of each task; the most telling first, fairly over the tasks.

    ``tasks`` are the ranks of each task's examples: 0 goes before 1, in all tasks. All have ``most`` characters.
    """
    chosen: list[dict[int, str]] = [{} for _ in tasks]
    size = 0
    for _, _, number, place in nsmallest(MAX_EXAMPLES, _ranked(tasks)):
        text = text_of(number, place)
        size += len(text)
        if size > most:
            break
        chosen[number][place] = text
    return chosen


def _ranked(tasks: Iterable[Iterable[int]]) -> Iterator[tuple[int, int, int, int]]:
    for number, ranks in enumerate(tasks):
        seen: dict[int, int] = {}
        for place, rank in enumerate(ranks):
            seen[rank] = before = seen.get(rank, 0) + 1
            yield rank, before, number, place


def _urgencies(flips: Flips, task: _Task) -> Iterator[int]:
    for result in task.results:
        yield urgency(result, flips.get((result.task, result.id), "") if flips else "")


def _tally(task: _Task, chosen: Mapping[int, str], flips: Flips) -> dict[str, Any]:
    left_out = Counter(result.status for place, result in enumerate(task.results) if place not in chosen)
    turned = Counter(flips.get((result.task, result.id), "") for result in task.results if flips)
    return {
        "task": task.name,
        "total": len(task.results),
        "statuses": dict(Counter(result.outcome.status for result in task.results)),
        "left_out": dict(left_out),
        "worse": turned["worse"],
        "better": turned["better"],
    }


def encode_task(prefix: str, chosen: Mapping[int, str]) -> str:
    """Return the data block of a task, its examples by place."""
    return f'{{"prefix":{encode(prefix)},"examples":[{",".join(text for _, text in sorted(chosen.items()))}]}}'


def _without_examples(comparison: Mapping[str, Any] | None) -> dict[str, Any] | None:
    # The flipped examples are among the task's own.
    if comparison is None:
        return None
    return {key: value for key, value in comparison.items() if key not in ("worse", "better")}


def latency_facts(values: Sequence[float]) -> dict[str, Any] | None:
    """Return count, quantiles in ms and ``bins`` of [low, high, count]; None without a value.

    Bins are of equal width, or of equal ratio where the values span more than a factor of 20.
    """
    if not values:
        return None
    ordered = sorted(values)
    quantiles = {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in _QUANTILES.items()}
    wide = ordered[0] > 0 and ordered[-1] / ordered[0] > _WIDE
    edges = _edges(ordered[0], ordered[-1], wide)
    return {"n": len(ordered), **quantiles, "max": ordered[-1], "log": wide, "bins": _bins(ordered, edges)}


def _edges(low: float, high: float, wide: bool) -> list[float]:
    if low == high:
        return [low, high]
    if wide:
        inner = [low * (high / low) ** (number / _BINS) for number in range(1, _BINS)]
    else:
        inner = [low + (high - low) * number / _BINS for number in range(1, _BINS)]
    return [low, *inner, high]


def _bins(ordered: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    counts = [0] * (len(edges) - 1)
    place = 0
    for value in ordered:
        while place < len(counts) - 1 and value >= edges[place + 1]:
            place += 1
        counts[place] += 1
    return [(low, high, count) for low, high, count in zip(edges, edges[1:], counts, strict=False)]
