"""What the page of several models knows: a column for each model, the best first, and every example across them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.compact_json import encode
from pytest_lmeval.leaderboard.rows import are_in_data, in_data
from pytest_lmeval.report.html.data import (
    MAX_CHARACTERS,
    TAGS,
    ReportData,
    common_prefix,
    encode_task,
    most_telling,
)
from pytest_lmeval.report.html.examples import ShownPair, example_fields
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.report.comparison import Compared
    from pytest_lmeval.report.html.shown import ShownExamples

Key = tuple[str, str]
_OF_THE_QUESTION = (
    *("id", "line", "prompt", "targets", "category", "tags", "cluster", "metric", "rule", "threshold"),
    *("must_pass", "item", "function"),
)
"""The fields that are given once for all columns that have the same."""
_NOTHING = object()
_PASSES = {"passed": True, "failed": False, "below": False}


class _Across(NamedTuple):
    """One example: what each column has of it, None where it has nothing."""

    results: Sequence[ExampleResult | None]
    present: Sequence[ExampleResult]
    differs: bool
    prompts_differ: bool


def columns_data(overview: Mapping[str, Any], columns: Sequence[Compared]) -> ReportData:
    """Return everything the page shows; ``overview`` is what is known of the models, ``columns`` has their results.

    What does not fit is left out, that in which models differ last, and counted by task.
    """
    tasks = _tasks(columns)
    held, prefixes = [*tasks.values()], [*map(_prefix, tasks.values())]

    def text_of(number: int, place: int) -> str:
        return _encoded_row(held[number][place], len(prefixes[number]), columns)

    # A column takes the room of an example of a page of one model; more than twice that opens too slowly.
    chosen = most_telling([*map(_urgencies, held)], text_of, 2 * MAX_CHARACTERS)
    results = [result for column in columns for result in column.results]
    tags = {*chain.from_iterable(map(TAGS, results))}
    return ReportData(
        {
            **overview,
            "board": {},
            "examples": [*map(_tally, tasks, held, chosen)],
            "picks": {"category": sorted({result.question.category for result in results} - {""}), "tag": sorted(tags)},
        },
        [*map(encode_task, prefixes, chosen)],
    )


def _tasks(columns: Sequence[Compared]) -> dict[str, list[_Across]]:
    """Return the rows of each task, in the order of the first column that has them."""
    held = [
        {(asked.task, asked.id): result for result in column.results for asked in (result.question,)}
        for column in columns
    ]
    tasks: dict[str, list[_Across]] = {}
    for key in dict.fromkeys(chain.from_iterable(held)):
        tasks.setdefault(key[0], []).append(_across([results.get(key) for results in held]))
    return {task: _in_data(rows) for task, rows in tasks.items()}


def _in_data(rows: list[_Across]) -> list[_Across]:
    firsts = [row.present[0] for row in rows]
    return rows if are_in_data(firsts) else sorted(rows, key=lambda row: in_data(row.present[0]))


def _across(results: Sequence[ExampleResult | None]) -> _Across:
    present = [result for result in results if result is not None]
    differs = len({None if result is None else result.outcome.status for result in results}) > 1
    # As a rule every model has the example: then one list is enough.
    return _Across(present if len(present) == len(results) else results, present, differs, _prompts_differ(present))


def _prompts_differ(present: Sequence[ExampleResult]) -> bool:
    """Tell whether models were asked with different prompts; where these are not kept, the hashes say so."""
    hashes = {result.question.hash for result in present}
    # A hash is of the prompt, too: what has the same was asked the same, and its text need not be read.
    if len(hashes) == 1 and "" not in hashes:
        return False
    if all(result.prompt for result in present):
        return len({result.prompt for result in present}) > 1
    return len(hashes) > 1 and len({result.scoring_hash for result in present}) == 1


def _prefix(rows: Sequence[_Across]) -> str:
    """Return what all prompts of a task begin with."""
    # Of the same prompts one is enough, but where it is the only one: that is said once for all columns.
    same = len(rows) > 1
    return common_prefix(
        [each for row in rows for each in (row.present[:1] if same and not row.prompts_differ else row.present)]
    )


def _urgencies(rows: Iterable[_Across]) -> Iterator[int]:
    """Yield how early each row is to be embedded: 0 first."""
    for row in rows:
        # Where they do not differ, all have the status of the first.
        yield 0 if row.differs else 2 if row.present[0].outcome.status == "passed" else 1


def _encoded_row(row: _Across, prefix: int, columns: Sequence[Compared]) -> str:
    fields = [
        None if result is None else _fields(result, prefix, column.shown)
        for result, column in zip(row.results, columns, strict=True)
    ]
    first = next(each for each in fields if each is not None)
    shared = {name: first[name] for name in _OF_THE_QUESTION if name in first}
    own = [None if each is None else _beside(each, shared) for each in fields]
    return encode({**shared, **({"prompts_differ": True} if row.prompts_differ else {}), "columns": own})


def _fields(result: ExampleResult, prefix: int, shown: ShownExamples | None) -> dict[str, Any]:
    kept = None if shown is None else shown.take(result, prefix)
    return example_fields(ShownPair(result), prefix) if kept is None else kept


def _beside(fields: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a column has besides what all of them share; what only this one lacks is None."""
    own = {name: value for name, value in fields.items() if shared.get(name, _NOTHING) != value}
    return own if shared.keys() <= fields.keys() else {**own, **{name: None for name in shared if name not in fields}}


def _tally(task: str, rows: Sequence[_Across], chosen: Mapping[int, str]) -> dict[str, Any]:
    left = [row.differs for place, row in enumerate(rows) if place not in chosen]
    left_out = {"in which models differ": sum(left), "in which they do not": len(left) - sum(left)}
    return {
        "task": task,
        "total": len(rows),
        "differ": sum(row.differs for row in rows),
        "prompts_differ": sum(row.prompts_differ for row in rows),
        "prompts_known": sum(len(row.present) > 1 for row in rows),
        "left_out": {kind: count for kind, count in left_out.items() if count},
        "columns": _flips(rows),
    }


def _flips(rows: Sequence[_Across]) -> list[dict[str, int]]:
    """Count what each column did not pass, and what it alone of it and the best one passed, or did not."""
    columns = [list(map(_passes, results)) for results in zip(*(row.results for row in rows), strict=True)]
    # The best one is the first; that itself has the next beside it.
    beside = [columns[min(1, len(columns) - 1)], *columns[:1] * (len(columns) - 1)]
    return [_flips_of(own, other) for own, other in zip(columns, beside, strict=True)]


def _flips_of(own: Sequence[bool | None], other: Sequence[bool | None]) -> dict[str, int]:
    pairs = [*zip(own, other, strict=True)]
    return {
        "failed": len(own) - own.count(True),
        "worse": pairs.count((False, True)),
        "better": pairs.count((True, False)),
    }


def _passes(result: ExampleResult | None) -> bool | None:
    return None if result is None else _PASSES.get(result.outcome.status)
