"""Collect a page's data: the leaderboard, facts from the results, and each task's examples."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import chain, pairwise, repeat, zip_longest
from operator import attrgetter, itemgetter
from typing import Any

from pytest_lmeval.compact_json import encode
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.aggregations import LEAST, percentile
from pytest_lmeval.leaderboard.rows import are_in_data, in_data
from pytest_lmeval.report.html.examples import (
    NO_START,
    NOTHING,
    Flips,
    PromptStart,
    example_fields,
    page_messages,
    urgency,
)
from pytest_lmeval.report.tables import CATEGORIES, SCORES, Row, change_row, overall_row, page_columns, score_rows
from pytest_lmeval.report.terminal_text import Screen
from pytest_lmeval.report.wording import command, is_off, rerun_parts
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

MAX_EXAMPLES = 10_000
MAX_CHARACTERS = 30_000_000
_SHORTEST_PREFIX = 200
_BINS = 24
_LABEL = 26
# Above this ratio of the slowest to the fastest answer, almost all answers would be in the first of equal bins.
_WIDE = 20.0
TAGS = attrgetter("question.tags")
_OF_SCORES = ("kind", "metric", "min_score", "verdict", "old", "ci95")
_QUANTILES = {"median": (0.5, 1), "p95": (0.95, LEAST["p95_ms"]), "p99": (0.99, 100)}
"""The share of each quantile, and the minimum number of values that it needs."""
_FLIPPED = ("worse", "better")


@dataclass(frozen=True, slots=True)
class ReportData:
    """The page's data blocks: ``overview`` is a JSON value, and ``tasks`` holds each task's examples as JSON text."""

    overview: Mapping[str, Any]
    tasks: Sequence[str]


def report_data(
    board: Mapping[str, Any],
    results: Sequence[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> ReportData:
    """Return the page's data; if it is too large, drop the least informative examples and count them."""
    gate = dict(board.get("gate") or {})
    of_the_gate = gate.pop("comparison", None)
    comparison = of_the_gate if comparison is None else comparison
    rows = [{key: value for key, value in row.items() if key != "per_example"} for row in board.get("tasks", ())]
    tasks = _tasks([row["task"] for row in rows], results)
    starts = [*map(common_start, tasks.values())]
    held = [*tasks.values()]
    beside = None
    if comparison is not None or baseline:
        from pytest_lmeval.report.html.before import against

        beside = against(results, comparison, baseline)
    flips = {} if beside is None else beside.flips

    def text_of(number: int, place: int) -> str:
        result = held[number][place]
        return encode(example_fields(result, starts[number], NOTHING if beside is None else beside.fields(result)))

    ranks = [[urgency(result, flips.get((result.task, result.id), "")) for result in each] for each in held]
    chosen = most_telling(ranks, text_of, MAX_CHARACTERS)
    manifest = board.get("manifest", {})
    floor = gate.get("settings", {}).get("floors", {}).get("overall")
    categories, label = sorted(board.get("categories") or ()), str(board.get("adapter", ""))
    overview = {
        "schema": board.get("schema", ""),
        "timestamp": board.get("timestamp", ""),
        "columns": [{"label": label, **short_labels([label])[0], "score": board.get("overall_score")}],
        "picks": {"category": categories, "tag": sorted({*chain.from_iterable(map(TAGS, results))})},
        "board": {**board, "tasks": rows, "gate": gate or None},
        "off": is_off(gate) if gate else bool(board.get("complete")),
        "sentence": sentence(board, comparison),
        # Omit the flipped examples, because the tasks' examples include them.
        "comparison": comparison and {name: each for name, each in comparison.items() if name not in _FLIPPED},
        "scores": _scores(board, comparison, floor),
        "breakdown": page_columns(CATEGORIES, ()),
        "overall_floor": floor,
        "examples": [*map(_tally, tasks, held, chosen, repeat(flips))],
        "latency": latency_facts([ms for result in results if (ms := result.answer.latency_ms) is not None]),
        "command": command(manifest),
        # For each task: the start of its rerun command's node ids, and the command's options.
        "rerun": {row["task"]: rerun_parts(manifest, str(row["path"])) for row in rows if row.get("path")},
        "has_baseline": bool(baseline) or comparison is not None,
    }
    return ReportData(overview, [*map(encode_task, starts, chosen)])


def sentence(board: Row, comparison: Row | None) -> str:
    """Return the sentence below the verdict of ``board``, which holds JSON values."""
    gate = board.get("gate") or {}
    if comparison is None and gate.get("verdict") in ("pass", "examples"):
        correct = sum(row["correct"] for row in board.get("tasks", ()))
        return f"{correct} of {board['counts']['scored']} examples passed."
    from pytest_lmeval.report.verdict_text import verdict_sentence

    return verdict_sentence(gate, comparison)


def short_labels(labels: Sequence[str]) -> list[dict[str, str]]:
    """Return ``{"short": ...}`` for each long label and ``{}`` for each short label; keep the labels distinct."""
    short = Screen().names(labels, _LABEL)
    return [{} if one == label else {"short": one} for label, one in zip(labels, short, strict=True)]


def _scores(board: Row, comparison: Row | None, floor: float | None) -> dict[str, Any]:
    """Return the columns and rows of the table of scores; each row has its change since the baseline."""
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
    score, floor = row["score"], row.get("min_score")
    return floor is not None and not (score is not None and is_at_least(score, floor))


def _tasks(names: Iterable[str], results: Iterable[ExampleResult]) -> dict[str, list[ExampleResult]]:
    tasks: dict[str, list[ExampleResult]] = {name: [] for name in names}
    for result in results:
        tasks.setdefault(result.task, []).append(result)
    return {name: held if are_in_data(held) else sorted(held, key=in_data) for name, held in tasks.items()}


def common_start(results: Sequence[ExampleResult]) -> PromptStart:
    """Return the common beginning of all prompts if it is long enough to store separately, otherwise ``NO_START``."""
    # The few-shot examples that a task's prompts share are often nine tenths of a ledger.
    if len(results) < 2:
        return NO_START
    common = results[0].question.prompt
    for result in results:
        # Reading a prompt may mean reading a file, so stop as soon as the common beginning is too short.
        if not (common := _shared_lines(common, result.question.prompt)):
            break
    if not results[0].question.messages:
        return PromptStart(common)
    from pytest_lmeval.report.html.messages import common_messages

    return PromptStart(common, common_messages(results, _SHORTEST_PREFIX))


def _shared_lines(one: str, other: str) -> str:
    """Return the whole lines that both strings share at the beginning, or "" if these lines are too short."""
    if not other.startswith(one):
        one = one[: next(place for place, (a, b) in enumerate(zip_longest(one, other)) if a != b)]
    end = one.rfind("\n") + 1
    return one[:end] if end >= _SHORTEST_PREFIX else ""


def most_telling(tasks: Sequence[Iterable[int]], text_of: Callable[[int, int], str], most: int) -> list[dict[int, str]]:
    """Return the encoded text of each task's most informative examples, by position; each task gets a fair share.

    ``tasks`` holds the ranks of each task's examples; examples of rank 0 in any task precede those of rank 1. The total
    length is at most ``most`` characters.
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


def _tally(task: str, results: Sequence[ExampleResult], chosen: Mapping[int, str], flips: Flips) -> dict[str, Any]:
    left_out = Counter(result.status for place, result in enumerate(results) if place not in chosen)
    turned = Counter(flips.get((result.task, result.id), "") for result in results if flips)
    return {
        "task": task,
        "total": len(results),
        "statuses": dict(Counter(result.outcome.status for result in results)),
        "left_out": dict(left_out),
        "worse": turned["worse"],
        "better": turned["better"],
    }


def encode_task(start: PromptStart, chosen: Mapping[int, str]) -> str:
    """Return a task's data block, with its examples in the order of their positions."""
    messages = f'"messages":{encode(page_messages(start.messages))},' if start.messages else ""
    examples = ",".join(text for _, text in sorted(chosen.items()))
    return f'{{"prefix":{encode(start.text)},{messages}"examples":[{examples}]}}'


def latency_facts(values: Sequence[float]) -> dict[str, Any] | None:
    """Return the count, quantiles in ms, and ``bins`` of (low, high, count); return None if there are no values.

    A quantile with too few values is None. Bins have equal widths, or equal ratios if the values span more than a
    factor of 20.
    """
    if not values:
        return None
    ordered = sorted(values)
    quantiles = {name: percentile(ordered, *wanted) for name, wanted in _QUANTILES.items()}
    wide = ordered[0] > 0 and ordered[-1] / ordered[0] > _WIDE
    edges = _edges(ordered[0], ordered[-1], wide)
    counts = Counter(min(bisect_right(edges, value), len(edges) - 1) - 1 for value in ordered)
    bins = [(low, high, counts[place]) for place, (low, high) in enumerate(pairwise(edges))]
    return {"n": len(ordered), **quantiles, "max": ordered[-1], "log": wide, "bins": bins}


def _edges(low: float, high: float, wide: bool) -> list[float]:
    if low == high:
        return [low, high]
    shares = [number / _BINS for number in range(1, _BINS)]
    return [low, *(low * (high / low) ** share if wide else low + (high - low) * share for share in shares), high]
