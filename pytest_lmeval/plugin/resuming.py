"""What a run takes over from the ledger of an earlier one, and what it says about that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_lmeval.engine.resume import HeldResults
from pytest_lmeval.types import ExampleResult

__all__ = ["Resumption"]

_DECISIVE = ("hash", "outputs", "score", "status", "threshold")


class Resumption:
    """The results in the ledger that ``--lm-resume`` goes on with; without the option there are none.

    ``reused`` counts the results of this run that the ledger holds already.
    """

    def __init__(self, held: HeldResults) -> None:
        self._held = held
        self.reused = 0

    @property
    def goes_on(self) -> bool:
        """Whether the ledger is continued."""
        return self._held.goes_on

    def takes(self, result: ExampleResult) -> bool:
        """Tell whether the ledger holds this very result, and count it."""
        held = self._held.results.get((result.task, result.id))
        is_held = held is not None and all(getattr(held, name) == getattr(result, name) for name in _DECISIVE)
        self.reused += is_held
        return is_held

    def left_out(self, results: Iterable[ExampleResult]) -> dict[str, Any]:
        """Return the field of the ledger's run line that names the examples in it that are not in ``results``."""
        counted = {(result.task, result.id) for result in results}
        left = self._held.keys - counted if self.goes_on else ()
        return {"left_out": sorted(left)} if left else {}

    def remarks(self, kept: Path | None) -> list[str]:
        """Return what to say at the end of the run; ``kept`` is the older ledger where it was not continued."""
        remarks = []
        if self.reused:
            of = f"the run of {self._held.started}" if self._held.complete else "the ledger"
            remarks.append(f"resumed: {self.reused} answer(s) out of {of} were used again")
        elif self._held.keys:
            other = "another adapter, other adapter options or another --lm-repeats"
            why = other if self._held.asked_otherwise else "other examples or prompts"
            remarks.append(f"resumed nothing: the {len(self._held.keys)} result(s) in the ledger are of {why}")
            if kept is not None:
                remarks.append(f"the older ledger is kept as {kept}")
        if self._held.damaged:
            remarks.append(f"{self._held.damaged} line(s) of the ledger could not be read")
        return remarks
