"""Find remarks that accompany a verdict, such as tasks without a score, ended quarantines and doubtful results."""

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
_ENOUGH = 5  # fewer examples may all be equal by chance
# Some model families begin their thoughts with these texts instead of the default think tags.
_THOUGHTS = re.compile(
    r"\s*(<(?:thinking|thoughts?|reason(?:ing)?|reflection|scratchpad|seed:think)>|\[THINK\]|◁think▷"
    r"|<\|begin_of_thought\|>|<\|channel\|>analysis|analysis(?=.*assistantfinal))",
    re.IGNORECASE | re.DOTALL,
)


def task_notes(board: Leaderboard) -> list[str]:
    """Return sentences about tasks that only aggregations score, and about unchecked keywords in tool schemas."""
    notes = []
    for row in board.tasks:
        if row.measured:
            notes.append(f"{row.task}: {_description(row)}")
        # Skip eval functions: they expect no tool calls, and their details are long.
        results = (result for result in row.per_example if result.details and result.metric != FUNCTION)
        if words := {word for result in results for word in _unchecked(result.details)}:
            keywords = ", ".join(sorted(words))
            notes.append(f"{row.task}: these keywords of the tools' schemas are not checked: {keywords}")
    return notes


def floor_without_score(board: Leaderboard, floors: Iterable[str]) -> str:
    """Return the reason why a floor cannot be checked because the task has no score on the board, or ""."""
    scored = {row.key: not row.is_unscored for row in board.tasks if row.key}
    return no_score_for_floor(floors, {**scored, **{row.task: not row.is_unscored for row in board.tasks}})


def no_score_for_floor(floors: Iterable[str], scores: Mapping[str, bool]) -> str:
    """Return the reason why a floor cannot be checked, or ""; ``scores`` says whether each task can have a score."""
    name = next((name for name in floors if not scores.get(name, True)), None)
    if name is None:
        return ""
    return (
        f"task {name!r} has no score, so it cannot have a floor: no field is the score of its examples, and "
        "score_metric names no metric"
    )


def ambiguous_floor(floors: Iterable[str], keys: Mapping[str, str]) -> str:
    """Return the reason why a floor's name is ambiguous, or ""; ``keys`` maps task names to keys."""
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
    """Return the quarantine in ``baseline`` that applies on the day of ``run``."""
    from pytest_lmeval.records.runfile import examples_of

    return Quarantine(run.timestamp[:10], quarantined(examples_of(baseline)))


def check_quarantine(board: Leaderboard, baseline: RunFile) -> None:
    """Raise UsageError if the board quarantines an example that the baseline does not.

    This happens if the examples ran without the baseline.
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
    """Return a sentence for each example whose quarantine has ended or is not yet in the baseline."""
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
    # The details of an example contain the details of its turns, repeats and scorers.
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
    """Return sentences about results that suggest a broken model or a parsing error, and about excessive quarantine."""
    aside = _too_much_aside(board) if board.quarantined() else []
    return [f"{row.task}: {doubt}" for row in board.tasks if (doubt := _doubt(row))] + aside


def _too_much_aside(board: Leaderboard) -> list[str]:
    """Return a sentence for each task with many quarantined examples, and one for long quarantines."""
    doubts = []
    for row in board.tasks:
        total = row.total - row.excluded
        if row.quarantined > _MUCH * total:
            doubts.append(f"{row.task}: {row.quarantined} of {total} examples are in quarantine and decide nothing")
    with suppress(ValueError):  # a file may have a malformed timestamp
        last = (date.fromisoformat(board.facts.timestamp[:10]) + _LONG).isoformat()
        if long := [each for each in board.quarantined() if str(each.get("until", "")) > last]:
            first = f"{long[0]['task']}: {long[0]['id']} until {long[0]['until']}"
            doubts.append(f"{len(long)} example(s) in quarantine for more than {_LONG.days} days: {first}")
    return doubts


def _doubt(row: TaskRow) -> str:
    scored = [result for result in row.per_example if result.is_scored]
    # Warn even about a single answer whose score includes its thoughts.
    if thoughts := _thoughts(row.per_example):
        return thoughts
    if len(scored) < _ENOUGH:
        return ""
    output = _common_output(scored)
    if output == "":
        return f"all {len(scored)} outputs are empty"
    if output is not None and len({result.targets for result in scored}) > 1:
        return f"all {len(scored)} outputs are identical"
    unparsed = sum(result.unparsed for result in scored)
    if unparsed == len(scored):
        return f"no answer could be extracted from any of {unparsed} outputs"
    if all(result.score == 0 for result in scored):
        return f"all {len(scored)} scores are 0"
    return ""


def _common_output(results: Sequence[ExampleResult]) -> str | None:
    """Return the stripped output that all results share, or None if outputs differ or an output is missing."""
    # All outputs together may not fit into memory, so read them one at a time. Log-likelihood examples have no output.
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
