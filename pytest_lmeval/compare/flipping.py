"""Find examples that pass in some runs of one model only, and propose their quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from pytest_lmeval.compare.pairing import Key
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.types import ExampleResult

OFTEN = 0.4
"""The flip rate at which quarantine is proposed: how often the example passes in only one of two runs."""
_DAYS = 30


@dataclass(frozen=True, slots=True)
class Flipping:
    """An example that passed in ``passed`` of ``runs``; ``rate`` is the share of the pairs of runs that differ."""

    task: str
    id: str
    runs: int
    passed: int
    rate: float
    quarantine: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    @property
    def line(self) -> str:
        """The line to show, with the value of ``quarantine`` for its extras or metadata."""
        return (
            f"{self.task}: {self.id}: passed in {self.passed} of {self.runs} runs, flip rate {self.rate:.2f}; "
            f"to set it aside: {json.dumps({'quarantine': self.quarantine})}"
        )


def flipping(runs: Sequence[RunFile], least: float = OFTEN) -> tuple[Flipping, ...]:
    """Return the examples with equal content in all runs that flip at a rate of ``least`` or more, the highest first.

    ``quarantine`` ends 30 days after the latest run.
    """
    until = _until(run.timestamp for run in runs)
    held: dict[Key, list[ExampleResult]] = {}
    for run in runs:
        for result in examples_of(run):
            if result.score is not None:
                held.setdefault((result.task, result.id), []).append(result)
    found = [_flipping(key, results, until) for key, results in held.items() if _is_one(results, len(runs))]
    often = [each for each in found if each.rate >= least]
    return tuple(sorted(often, key=lambda each: (-each.rate, each.task, each.id)))


def _is_one(results: Sequence[ExampleResult], runs: int) -> bool:
    return len(results) == runs and len({result.hash for result in results}) == 1


def _flipping(key: Key, results: Sequence[ExampleResult], until: str) -> Flipping:
    count = len(results)
    passed = sum(map(reaches, results))
    rate = 2 * passed * (count - passed) / (count * (count - 1))
    reason = f"passed in {passed} of {count} runs of one model"
    return Flipping(*key, count, passed, rate, {"until": until, "reason": reason})


def _until(timestamps: Iterable[str]) -> str:
    latest = max(timestamps)[:10]
    try:
        return (date.fromisoformat(latest) + timedelta(days=_DAYS)).isoformat()
    except ValueError:
        return latest
