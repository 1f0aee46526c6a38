"""Quarantine examples until a given day: they run and get scores, but do not affect the run's outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.types import ExampleResult, Status

Entry = Mapping[str, str]
"""A quarantine's last day, ``until`` (YYYY-MM-DD in UTC), and ``reason``; empty if the example is not in quarantine."""
_NONE: Entry = MappingProxyType({})
_MAY_BE = frozenset({"passed", "failed", "below", "error", "timeout", "quarantined"})


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Decides which examples are in quarantine on ``day`` (YYYY-MM-DD in UTC).

    ``listed`` maps (task, id) to the baseline's quarantine entries, or is None without a baseline. The baseline's
    entries replace the entries in task files, so that a pull request cannot quarantine the examples that it breaks.
    """

    day: str = ""
    listed: Mapping[tuple[str, str], Entry] | None = None

    def of(self, task: str, id: str, own: Any) -> Entry:
        """Return the quarantine entry that applies to an example; ``own`` is the entry in the example's extras."""
        entry = own if self.listed is None else self.listed.get((task, id))
        if not entry or not isinstance(entry, Mapping):
            return _NONE
        return entry if self.day <= str(entry.get("until", "")) else _NONE

    def applied(self, result: ExampleResult) -> ExampleResult:
        """Return the result, with the status ``quarantined`` if its example is in quarantine."""
        entry = self.of(result.task, result.id, result.quarantine)
        if not entry or result.status not in _MAY_BE:
            return result
        return replace(result, status="quarantined", quarantine=dict(entry))

    def judged(self, results: Iterable[ExampleResult], mode: str) -> tuple[ExampleResult, ...]:
        """Apply this quarantine to recorded results under the gate ``mode``."""
        released = (
            replace(each, status=status_under(each, mode)) if each.status == "quarantined" else each for each in results
        )
        return tuple(map(self.applied, released))


def quarantined(results: Iterable[ExampleResult]) -> dict[tuple[str, str], Entry]:
    """Return the quarantine entries of ``results`` by (task, id)."""
    return {(each.task, each.id): each.quarantine for each in results if each.status == "quarantined"}


def status_under(result: ExampleResult, mode: str) -> Status:
    """Return a result's status under the gate ``mode``."""
    if result.score is None or reaches(result):
        return "error" if result.score is None else "passed"
    decisive = mode == "examples" or (result.must_pass and mode != "none")
    return "failed" if decisive else "below"


def judged(results: Iterable[ExampleResult], mode: str, recorded: str = "") -> tuple[ExampleResult, ...]:
    """Return the results with the statuses that they would have under the gate ``mode``.

    ``recorded`` is the original run's gate mode. If ``recorded`` fails low scores but a result is ``below``, a mark
    such as xfail excused the result, which stays ``below``.
    """
    return tuple(replace(result, status=_status(result, mode, recorded)) for result in results)


def _status(result: ExampleResult, mode: str, recorded: str) -> Status:
    excused = bool(recorded) and result.status == "below" and status_under(result, recorded) == "failed"
    fixed = result.score is None or result.status == "quarantined" or excused
    return result.status if fixed else status_under(result, mode)
