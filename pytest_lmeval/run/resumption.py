"""Track the results that a run reuses from the ledger that it resumes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.records.stored import StoredLine
    from pytest_lmeval.run.resume import HeldResults

_TEXTS = ("prompt", "messages", "outputs", "thoughts", "exchanges", "predictions")
_DECISIVE = ("hash", "outputs", "score", "status", "threshold")


class Resumption:
    """Compares the run's results with those in the ledger that ``--lm-resume`` resumes, if the option is given.

    ``reused`` counts this run's results that the ledger already contains. ``is_own`` means that this run may change the
    ledger; a run of selected examples does not change the ledger of the whole run.
    """

    def __init__(self, held: HeldResults | None, *, is_own: bool = True) -> None:
        self._held = held
        self._is_own = is_own
        self.reused = 0
        self._withdrawn: set[tuple[str, str]] = set()

    @property
    def goes_on(self) -> bool:
        """True if the run appends to the existing ledger."""
        return self._is_own and (self._held is None or self._held.goes_on)

    def takes(self, result: ExampleResult) -> bool:
        """Count ``result`` if the ledger contains it; return True if there is no need to write it again."""
        held = None if self._held is None else self._held.results.get((result.task, result.id))
        if held is None or not all(getattr(held, name) == getattr(result, name) for name in _DECISIVE):
            return False
        from pytest_lmeval.records.answers import is_of
        from pytest_lmeval.records.recording import judge_keys

        # Another model or judge may give the same answer, but the ledger must record which of them gave it.
        if not is_of(held.adapter_key, result.adapter_key):
            return False
        if not judge_keys(held.details) <= judge_keys(result.details):
            return False
        self.reused += 1
        # Older versions did not record item names, so write such a result again.
        return self._is_own and held.item == result.item

    def stored(self, result: ExampleResult) -> StoredLine | None:
        """Return the ledger line that holds a result's text, or None if the text is in memory."""
        assert self._held is not None
        held = self._held.results[result.task, result.id]
        is_same = all(getattr(held, name) == getattr(result, name) for name in _TEXTS)
        return getattr(held.answer, "at", None) if is_same else None

    def withdraw(self, result: ExampleResult | None) -> None:
        """Mark a result in the ledger as invalid until its example gets a new result."""
        if result is not None:
            self._withdrawn.add((result.task, result.id))

    def left_out(self, results: Iterable[ExampleResult]) -> list[tuple[str, str]]:
        """Return the (task, id) of each example in the ledger that is missing from ``results``."""
        counted = {(result.task, result.id) for result in results}
        held = self._held.keys if self._held is not None and self.goes_on else frozenset()
        return sorted((held | self._withdrawn) - counted)

    def remarks(self, kept: Path | None) -> list[str]:
        """Return remarks for the end of the run; ``kept`` is the path of the older ledger if it was set aside."""
        if self._held is None:
            return []
        remarks = []
        if self._held.nothing:
            remarks.append(f"--lm-resume: nothing to resume, {self._held.nothing}; every example was asked")
        elif self.reused:
            of = f"the run of {self._held.started}" if self._held.complete else "the ledger"
            remarks.append(f"resumed: reused {self.reused} answer(s) of {of}")
        elif self._held.keys:
            other = "another adapter, other adapter options or another --lm-repeats"
            own = "other examples or prompts, or of an adapter with other code, attributes or fingerprint"
            why = other if self._held.has_other_settings else own
            remarks.append(f"resumed nothing: the {len(self._held.keys)} result(s) in the ledger are of {why}")
            if kept is not None:
                remarks.append(f"the older ledger is kept as {kept}")
        if further := self._held.unfinished:
            remarks.append(f"resumed: reused {further} answer(s) of examples without a result")
        if self._held.damaged:
            remarks.append(f"{self._held.damaged} line(s) of the ledger could not be read")
        return remarks
