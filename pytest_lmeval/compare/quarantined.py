"""Quarantine where runs are compared: the older run says which examples are in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.quarantine import Quarantine, quarantined

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.records.runfile import RunFile
    from pytest_lmeval.types import ExampleResult


def quarantine_of(run: RunFile, baseline: RunFile) -> Quarantine:
    """Return the quarantine that holds for ``run`` on its day where it is compared with ``baseline``."""
    from pytest_lmeval.records.runfile import examples_of

    return Quarantine(run.timestamp[:10], quarantined(examples_of(baseline)))


def check_quarantine(board: Leaderboard, baseline: RunFile | None) -> None:
    """Raise UsageError where examples of the board are in quarantine that are not so in the baseline, or not any more.

    A board of a run that was not compared with the baseline from its beginning can be such.
    """
    listed = quarantined(baseline.results or ()) if baseline is not None else None
    if listed is None:
        return
    held = {(entry["task"], entry["id"]) for entry in board.quarantined()}
    if wrong := sorted(held - listed.keys()):
        task, id = wrong[0]
        raise UsageError(
            f"{task}: {id} is quarantined in the board and not in the baseline, whose list counts; run the examples "
            "with that baseline: run_leaderboard(..., baseline=...)"
        )


def quarantine_lines(board: Leaderboard, baseline: str) -> list[str]:
    """Return a sentence for every example whose quarantine is not in force, though it has one."""
    results = [result for row in board.tasks for result in row.per_example]
    day = board.facts.timestamp[:10]
    return [f"{each.task}: {each.id}: {_why(each, day)}" for each in results if each.quarantine and _is_free(each)]


def _is_free(result: ExampleResult) -> bool:
    return result.status not in ("quarantined", "excluded", "measured")


def _why(result: ExampleResult, day: str) -> str:
    until = result.quarantine.get("until", "")
    if until < day:
        return f"its quarantine ended with {until}: it counts again"
    return "its quarantine counts once the baseline has it: a change cannot excuse itself"
