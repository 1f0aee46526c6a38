"""What is said of a board besides its verdict: tasks without a score, quarantines not in force, results to doubt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.details import METRIC as FUNCTION
from pytest_lmeval.leaderboard.quarantine import Quarantine, quarantined
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.leaderboard.rows import TaskRow
    from pytest_lmeval.records.runfile import RunFile

_MUCH = 0.1
_LONG = timedelta(days=90)
_ENOUGH = 5  # of fewer examples anything may be true of all
# How families of models begin their thoughts, besides the tags that are taken off where nothing else is asked for.
_THOUGHTS = re.compile(
    r"\s*(<(?:thinking|thoughts?|reason(?:ing)?|reflection|scratchpad|seed:think)>|\[THINK\]|◁think▷"
    r"|<\|begin_of_thought\|>|<\|channel\|>analysis|analysis(?=.*assistantfinal))",
    re.IGNORECASE | re.DOTALL,
)


def names_of(counts: Mapping[str, int], most: int = 5) -> str:
    """Return names with how often each, the most frequent first, and how many others there are."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    more = [f"and {len(ordered) - most} more"] if len(ordered) > most else []
    return ", ".join([*(f"{name} ({count})" for name, count in ordered[:most]), *more])


def task_notes(board: Leaderboard) -> list[str]:
    """Return a sentence for every task with measured examples, and with calls that are not held to all of a schema."""
    notes = []
    for row in board.tasks:
        if row.measured:
            notes.append(f"{row.task}: {_description(row)}")
        words: set[str] = set()
        for result in row.per_example:
            # A function has no calls that are expected, and long details: its steps.
            if result.details and result.metric != FUNCTION:
                words.update(_unchecked(result.details))
        if words:
            keywords = ", ".join(sorted(words))
            notes.append(f"{row.task}: these keywords of the tools' schemas are not checked: {keywords}")
    return notes


def floor_without_score(board: Leaderboard, floors: Iterable[str]) -> str:
    """Return why a floor cannot be held, or "", of a board: only the results of some tasks tell that they have none."""
    scored = {row.key: not row.is_unscored for row in board.tasks if row.key}
    return no_score_for_floor(floors, {**scored, **{row.task: not row.is_unscored for row in board.tasks}})


def no_score_for_floor(floors: Iterable[str], scores: Mapping[str, bool]) -> str:
    """Return why a floor cannot be held, or "". ``scores`` says of each task whether it can have a score."""
    name = next((name for name in floors if not scores.get(name, True)), None)
    if name is None:
        return ""
    return (
        f"task {name!r} has no score, so it cannot have a floor: no field is the score of its examples, and "
        "score_metric names no metric"
    )


def ambiguous_floor(floors: Iterable[str], keys: Mapping[str, str]) -> str:
    """Return why a floor has two meanings, or "". ``keys`` has the key of each task by its name, "" without one."""
    for name in floors:
        others = sorted(task for task, key in keys.items() if key == name and task != name)
        if name in keys and others:
            whose = " and ".join(repr(task) for task in others)
            return (
                f"the floor of {name!r} is ambiguous: it is the name of a task and the key of {whose}; use "
                f"{' or '.join(others)}, or rename one of them"
            )
    return ""


def _description(row: TaskRow) -> str:
    name = row.measured["score_metric"]
    score = f"its score is the metric {name!r}" if name else "it has no score and is outside the overall score"
    return (
        f"{row.measured['examples']} example(s) are measured by aggregations only: no threshold applies to them, no "
        f"baseline is compared; {score}"
    )


def quarantine_of(run: RunFile, baseline: RunFile) -> Quarantine:
    """Return the quarantine that holds for ``run`` on its day where it is compared with ``baseline``."""
    from pytest_lmeval.records.runfile import examples_of

    return Quarantine(run.timestamp[:10], quarantined(examples_of(baseline)))


def check_quarantine(board: Leaderboard, baseline: RunFile) -> None:
    """Raise UsageError where examples of the board are in quarantine that are not so in the baseline, or not any more.

    A board of a run that was not compared with the baseline from its beginning can be such.
    """
    listed = quarantined(baseline.results or ())
    held = {(entry["task"], entry["id"]) for entry in board.quarantined()}
    if wrong := sorted(held - listed.keys()):
        task, id = wrong[0]
        raise UsageError(
            f"{task}: {id} is quarantined in the board and not in the baseline, whose list counts; run the examples "
            "with that baseline: run_leaderboard(..., baseline=...)"
        )


def not_in_force(board: Leaderboard) -> list[str]:
    """Return a sentence for every example whose quarantine is not in force, though it has one."""
    day = board.facts.timestamp[:10]
    return [
        f"{each.task}: {each.id}: {_why(each, day)}"
        for row in board.tasks
        for each in row.per_example
        if each.quarantine and each.status not in ("quarantined", "excluded", "measured")
    ]


def _why(result: ExampleResult, day: str) -> str:
    until = result.quarantine.get("until", "")
    if until < day:
        return f"its quarantine ended on {until}: it counts again"
    return "its quarantine takes effect once the baseline contains it: a change cannot excuse itself"


def _unchecked(details: Any) -> Iterator[str]:
    # Of turns, of repeats, and of the scorers of a task file the details are within those of the example.
    # Dictionaries and lists, not any mapping: every example of a run is looked at.
    if isinstance(details, dict):
        for name, value in details.items():
            if name == "not_checked" and isinstance(value, list):
                yield from map(str, value)
            elif isinstance(value, (dict, list)):
                yield from _unchecked(value)
    elif isinstance(details, list):
        for each in details:
            yield from _unchecked(each)


def suspicions(board: Leaderboard) -> list[str]:
    """Return a sentence for every task that looks as if the model, or the reading of its answers, was broken."""
    aside = _too_much_aside(board) if board.quarantined() else []
    return [f"{row.task}: {doubt}" for row in board.tasks if (doubt := _doubt(row))] + aside


def _too_much_aside(board: Leaderboard) -> list[str]:
    """Return a sentence for each task with much of it in quarantine, and one for what is so for long."""
    doubts = []
    for row in board.tasks:
        total = row.total - row.excluded
        if row.quarantined > _MUCH * total:
            doubts.append(f"{row.task}: {row.quarantined} of {total} examples are in quarantine and decide nothing")
    with suppress(ValueError):  # a file that was read may hold anything
        last = (date.fromisoformat(board.facts.timestamp[:10]) + _LONG).isoformat()
        if long := [each for each in board.quarantined() if str(each.get("until", "")) > last]:
            first = f"{long[0]['task']}: {long[0]['id']} until {long[0]['until']}"
            doubts.append(f"{len(long)} example(s) in quarantine for more than {_LONG.days} days: {first}")
    return doubts


def _doubt(row: TaskRow) -> str:
    scored = [result for result in row.per_example if result.is_scored]
    # One answer that is scored with its thoughts is one too many.
    if thoughts := _thoughts(row.per_example):
        return thoughts
    if len(scored) < _ENOUGH:
        return ""
    said = _said_by_all(scored)
    if said == "":
        return f"all {len(scored)} outputs are empty"
    if said is not None and len({result.targets for result in scored}) > 1:
        return f"all {len(scored)} outputs are identical"
    unparsed = sum(result.unparsed for result in scored)
    if unparsed == len(scored):
        return f"no answer could be extracted from any of {unparsed} outputs"
    if all(result.score == 0 for result in scored):
        return f"all {len(scored)} scores are 0"
    return ""


def _said_by_all(results: Sequence[ExampleResult]) -> str | None:
    """Return what all outputs are but for blanks at their ends; None where they differ, or one has none."""
    # One at a time: all together may be more than memory holds. What is scored by log-likelihoods has no output.
    outputs = (output and output.strip() for result in results for output in result.outputs or (None,))
    first = next(outputs, None)
    return first if all(output == first for output in outputs) else None


def _thoughts(results: Sequence[ExampleResult]) -> str:
    begun: Counter[str] = Counter()
    for result in results:
        if result.outputs and (found := _THOUGHTS.match(result.outputs[0])):
            begun[found[1]] += 1
    if not begun:
        return ""
    tag, _ = begun.most_common(1)[0]
    return (
        f"{begun.total()} of {len(results)} outputs begin with {tag}: these thoughts are scored as part of the answer; "
        "set --lm-think-tags=OPEN,CLOSE to the tags around them"
    )
