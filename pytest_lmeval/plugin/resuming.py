"""What a run takes over from the ledger of an earlier one, and what it says about that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_lmeval.engine.resume import HeldResults
from pytest_lmeval.types import ExampleResult

_DECISIVE = ("hash", "outputs", "score", "status", "threshold")


class Resumption:
    """The results in the ledger that ``--lm-resume`` goes on with; without the option there are none.

    ``reused`` counts the results of this run that the ledger holds already. ``is_own`` says that it is this run's: that
    of a whole run stays as it is where examples are picked.
    """

    def __init__(self, held: HeldResults, *, is_own: bool = True) -> None:
        self._held = held
        self._is_own = is_own
        self.reused = 0
        self._withdrawn: set[tuple[str, str]] = set()

    @property
    def goes_on(self) -> bool:
        """Whether the ledger is continued."""
        return self._is_own and self._held.goes_on

    def takes(self, result: ExampleResult) -> bool:
        """Tell whether the ledger holds this very result, and count it."""
        held = self._held.results.get((result.task, result.id))
        if held is None or not all(getattr(held, name) == getattr(result, name) for name in _DECISIVE):
            return False
        self.reused += 1
        # An older version did not record the name of the item.
        return self._is_own and held.item == result.item

    def withdraw(self, result: ExampleResult | None) -> None:
        """Note a result that is in the ledger, and not counted unless another one of its example follows."""
        if result is not None:
            self._withdrawn.add((result.task, result.id))

    def left_out(self, results: Iterable[ExampleResult]) -> list[tuple[str, str]]:
        """Return task and id of the examples in the ledger that are not in ``results``, those that the run counts."""
        counted = {(result.task, result.id) for result in results}
        held = self._held.keys if self.goes_on else frozenset()
        return sorted((held | self._withdrawn) - counted)

    def remarks(self, kept: Path | None) -> list[str]:
        """Return what to say at the end of the run; ``kept`` is the older ledger where it was not continued."""
        remarks = []
        if self._held.nothing:
            remarks.append(f"--lm-resume: nothing to resume, {self._held.nothing}; every example was asked")
        elif self.reused:
            of = f"the run of {self._held.started}" if self._held.complete else "the ledger"
            remarks.append(f"resumed: {self.reused} answer(s) out of {of} were used again")
        elif self._held.keys:
            other = "another adapter, other adapter options or another --lm-repeats"
            why = other if self._held.asked_otherwise else "other examples or prompts"
            remarks.append(f"resumed nothing: the {len(self._held.keys)} result(s) in the ledger are of {why}")
            if kept is not None:
                remarks.append(f"the older ledger is kept as {kept}")
        if further := self._held.unfinished:
            remarks.append(f"resumed: {further} answer(s) of examples that had no result yet were at hand")
        if self._held.damaged:
            remarks.append(f"{self._held.damaged} line(s) of the ledger could not be read")
        return remarks
