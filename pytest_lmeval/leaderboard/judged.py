"""Summarize the verdicts by a task's judges: how many are readable, and how often they agree with people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from pytest_lmeval.judging.question import UNREAD
from pytest_lmeval.judging.summary import judge_note, measures_of
from pytest_lmeval.leaderboard.details import RUBRIC, details_of, is_function
from pytest_lmeval.types import ExampleResult

GRADE = "grade"
"""The name of a judge's grades in eval functions."""
JUDGMENT = "judgment"
"""The name of a judge's labels in eval functions if a person has labelled the same answers."""
_MOST = 20


def judged(results: Sequence[ExampleResult]) -> dict[str, Any]:
    """Return the judges' agreement with people as metrics, and notes on the judges, in the format of task aggregates.

    Group the grades by rubric if there are 2 to 20 rubrics.
    """
    results = [result for result in results if result.decides]
    entries = [entry for result in results for entry in _entries(result)]
    rubrics = sorted({entry["rubric"] for entry in entries})
    is_by_rubric = 1 < len(rubrics) <= _MOST
    name = itemgetter("name")
    named = sorted(
        ({**entry, "name": _name(entry) if is_by_rubric else entry["scorer"]} for entry in entries), key=name
    )
    groups = {key: [*group] for key, group in groupby(named, key=name)}
    # Errors do not contain the judge's name.
    unread = sum(UNREAD in result.error for result in results) if len(groups) == 1 else 0
    notes = {key: _note(group, unread) for key, group in groups.items()}
    return {"metrics": measures_of(notes), "notes": {"judges": notes}} if notes else {}


def _name(entry: Mapping[str, Any]) -> str:
    return f"{JUDGMENT if entry['scorer'] == JUDGMENT else GRADE}: {entry['rubric']}"


def _note(entries: Sequence[Mapping[str, Any]], unread: int) -> dict[str, Any]:
    hashes = {entry["prompt_hash"] for entry in entries}
    verdicts = [(entry["score"], entry["human_label"]) for entry in entries]
    return judge_note(entries, hashes.pop() if len(hashes) == 1 else "", unread, verdicts)


def _entries(result: ExampleResult) -> Iterator[dict[str, Any]]:
    function = is_function(result)
    for details in details_of(result):
        found = _of_steps(details.get("steps")) if function else details.get("judge")
        for entry in found if isinstance(found, list) else ():
            if not isinstance(entry, Mapping):
                continue
            if "reason" in entry and isinstance(entry.get("score"), int | float):
                yield _entry(entry, GRADE if function else str(entry.get("scorer", RUBRIC)))
            elif function and "human_label" in entry:
                yield _entry({**entry, "score": entry.get("label")}, JUDGMENT)


def _entry(given: Mapping[str, Any], scorer: str) -> dict[str, Any]:
    texts = {name: str(given.get(name, "")) for name in ("judge", "prompt_hash", "rubric")}
    found = {name: given.get(name) for name in ("score", "human_label", "repaired")}
    return {**found, **texts, "scorer": scorer}


def _of_steps(steps: Any) -> list[dict[str, Any]]:
    kept: Iterable[Any] = steps if isinstance(steps, list) else ()
    return [
        {**step["verdict"], "judge": step.get("name", "")}
        for step in kept
        if isinstance(step, Mapping) and isinstance(step.get("verdict"), Mapping)
    ]
