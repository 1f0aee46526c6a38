"""What the page of several models knows: a column for each model, the best first, and every example across them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.rows import in_data
from pytest_lmeval.report.html.data import (
    MAX_CHARACTERS,
    MAX_EXAMPLES,
    TAGS,
    ReportData,
    common_prefix,
)
from pytest_lmeval.report.html.examples import ShownPair, example_fields
from pytest_lmeval.report.html.steps import encode
from pytest_lmeval.types import UNSCORED, ExampleResult

Key = tuple[str, str]
_OF_THE_QUESTION = (
    *("id", "line", "prompt", "targets", "category", "tags", "cluster", "metric", "rule", "threshold"),
    *("must_pass", "item", "function"),
)
"""The fields that are given once for all columns that have the same."""
_PASSES = {"passed": True, "failed": False, "below": False}


@dataclass(frozen=True, slots=True)
class Column:
    """One model: what is said of it as a whole, in JSON values, and its results with their prompts."""

    facts: Mapping[str, Any]
    results: Sequence[ExampleResult]


@dataclass(frozen=True, slots=True)
class _Across:
    """One example: what each column has of it, None where it has nothing."""

    key: Key
    results: Sequence[ExampleResult | None]

    @property
    def present(self) -> list[ExampleResult]:
        return [result for result in self.results if result is not None]

    @property
    def differs(self) -> bool:
        return len({None if result is None else result.status for result in self.results}) > 1

    @property
    def prompts_differ(self) -> bool:
        """Whether models were asked with different prompts; where these are not kept, the hashes say so."""
        present = self.present
        if all(result.prompt for result in present):
            return len({result.prompt for result in present}) > 1
        return len({result.hash for result in present}) > 1 and len({result.scoring_hash for result in present}) == 1


def columns_data(overview: Mapping[str, Any], columns: Sequence[Column]) -> ReportData:
    """Return everything the page shows; ``overview`` is what is known of all columns together.

    What does not fit is left out, that in which models differ last, and counted by task.
    """
    tasks = _tasks(columns)
    prefixes = {task: common_prefix([each for row in rows for each in row.present]) for task, rows in tasks.items()}
    chosen = _chosen(tasks, prefixes)
    results = [result for column in columns for result in column.results]
    tags = {*chain.from_iterable(map(TAGS, results))}
    return ReportData(
        {
            **overview,
            "board": {},
            "columns": [column.facts for column in columns],
            "examples": [_tally(task, rows, chosen[task]) for task, rows in tasks.items()],
            "picks": {"category": sorted({result.category for result in results} - {""}), "tag": sorted(tags)},
        },
        [_encoded(prefixes[task], [text for _, text in sorted(chosen[task].items())]) for task in tasks],
    )


def _tasks(columns: Sequence[Column]) -> dict[str, list[_Across]]:
    """Return the rows of each task, in the order of the first column that has them."""
    held = [{(result.task, result.id): result for result in column.results} for column in columns]
    tasks: dict[str, list[_Across]] = {}
    for key in dict.fromkeys(key for results in held for key in results):
        tasks.setdefault(key[0], []).append(_Across(key, [results.get(key) for results in held]))
    return {task: sorted(rows, key=lambda row: in_data(row.present[0])) for task, rows in tasks.items()}


def _chosen(tasks: Mapping[str, Sequence[_Across]], prefixes: Mapping[str, str]) -> dict[str, dict[int, str]]:
    """Return the encoded examples to embed, by task and place; the most telling first, fairly over the tasks."""
    chosen: dict[str, dict[int, str]] = {task: {} for task in tasks}
    count = size = 0
    for task, place in _by_urgency(tasks):
        text = _encoded_row(tasks[task][place], len(prefixes[task]))
        # A column takes the room of an example of a page of one model; more than twice that opens too slowly.
        if count == MAX_EXAMPLES or size + len(text) > 2 * MAX_CHARACTERS:
            break
        chosen[task][place] = text
        count, size = count + 1, size + len(text)
    return chosen


def _by_urgency(tasks: Mapping[str, Sequence[_Across]]) -> Iterator[tuple[str, int]]:
    ranked = []
    for number, (task, rows) in enumerate(tasks.items()):
        seen: Counter[int] = Counter()
        for place, row in enumerate(rows):
            rank = _urgency(row)
            seen[rank] += 1
            ranked.append(((rank, seen[rank], number), task, place))
    return ((task, place) for _, task, place in sorted(ranked, key=lambda entry: entry[0]))


def _urgency(row: _Across) -> int:
    if row.differs:
        return 0
    return 1 if any(result.status in UNSCORED or result.status != "passed" for result in row.present) else 2


def _encoded_row(row: _Across, prefix: int) -> str:
    columns = [
        None if result is None else example_fields(ShownPair(result, None, ""), prefix) for result in row.results
    ]
    first = next(fields for fields in columns if fields is not None)
    shared = {name: first[name] for name in _OF_THE_QUESTION if name in first}
    own = [None if fields is None else _beside(fields, shared) for fields in columns]
    return encode({**shared, **({"prompts_differ": True} if row.prompts_differ else {}), "columns": own})


def _beside(fields: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a column has besides what all of them share; what only this one lacks is None."""
    own = {name: value for name, value in fields.items() if name not in shared or value != shared[name]}
    return {**own, **{name: None for name in shared if name not in fields}}


def _tally(task: str, rows: Sequence[_Across], chosen: Mapping[int, str]) -> dict[str, Any]:
    left = [row for place, row in enumerate(rows) if place not in chosen]
    apart = sum(row.differs for row in left)
    left_out = {"in which models differ": apart, "in which they do not": len(left) - apart}
    return {
        "task": task,
        "total": len(rows),
        "differ": sum(row.differs for row in rows),
        "prompts_differ": sum(row.prompts_differ for row in rows),
        "prompts_known": sum(len(row.present) > 1 for row in rows),
        "left_out": {kind: count for kind, count in left_out.items() if count},
        "columns": [_flips(rows, place) for place in range(len(rows[0].results))],
    }


def _flips(rows: Sequence[_Across], place: int) -> dict[str, int]:
    """Count what a column did not pass, and what it alone of it and the best one passed, or did not."""
    beside = 0 if place else min(1, len(rows[0].results) - 1)
    pairs = [(_passes(row.results[place]), _passes(row.results[beside])) for row in rows]
    return {
        "failed": sum(own is not True for own, _ in pairs),
        "worse": pairs.count((False, True)),
        "better": pairs.count((True, False)),
    }


def _passes(result: ExampleResult | None) -> bool | None:
    return None if result is None else _PASSES.get(result.status)


def _encoded(prefix: str, examples: Sequence[str]) -> str:
    return f'{{"prefix":{encode(prefix)},"examples":[{",".join(examples)}]}}'
