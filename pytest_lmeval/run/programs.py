"""How one process of a run runs what the model wrote: at which level, and whether that level is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_lmeval.run.refusing import Refusals
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox

__all__ = ["Programs"]


class Programs:
    """Probes the sandbox where there is a program to run, and nowhere else; ``level`` is what programs ran at."""

    def __init__(self, settings: RunSettings, refusals: Refusals) -> None:
        self._settings = settings
        self._refusals = refusals
        self._is_trusted = False
        self.any = False
        self.level = ""

    def prepare(self, units: Sequence[Any], *, trusted: bool) -> None:
        """Find out whether any of ``units`` runs programs, and refuse those that cannot be run as they should.

        ``trusted`` says that the programs are ours: they run at the best level there is.
        """
        self._is_trusted = trusted
        self.any = any(self._refusals.runs_code(unit.task, unit.example) for unit in units)
        if self.any and not trusted:
            from pytest_lmeval.sandbox import require_level

            self._refusals.look_at_code(require_level(self._settings.sandbox))

    def open(self) -> Sandbox:
        """Return the place where programs are run."""
        from pytest_lmeval.sandbox import open_sandbox, require_level

        wanted = self._settings.sandbox
        if not self.any:
            return open_sandbox(wanted)
        level = None if self._is_trusted and require_level(wanted) else wanted
        sandbox = open_sandbox(level, workers=self._settings.share, packages=self._settings.packages)
        self.level = sandbox.level
        return sandbox

    def report(self) -> str | None:
        """Return how programs will be run, where there are any."""
        if not self.any:
            return None
        missing = self._refusals.code
        return f"lmeval: programs run at sandbox level {self._settings.sandbox}" + (
            f": NOT HERE: {missing}" if missing else ", probed"
        )
