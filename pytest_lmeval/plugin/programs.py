"""How one process of a run runs what the model wrote: at which level, and whether that level is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_lmeval.plugin.state import RunState
    from pytest_lmeval.sandbox import Sandbox

__all__ = ["Programs"]


class Programs:
    """Probes the sandbox where there is a program to run, and nowhere else; ``level`` is what programs ran at."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._wanted: str = run.config.option.lm_sandbox
        self.any = False
        self.level = ""

    def prepare(self, items: Sequence[Any]) -> None:
        """Find out whether any of ``items`` runs programs, and refuse those that cannot be run as they should."""
        refusals = self._run.refusals
        self.any = any(refusals.runs_code(item.task, item.example) for item in items)
        if self.any and not self._run.is_trusted:
            from pytest_lmeval.sandbox import require_level

            refusals.look_at_code(require_level(self._wanted))

    def open(self) -> Sandbox:
        """Return the place where programs are run; those of a trusted adapter at the best level there is."""
        from pytest_lmeval.sandbox import open_sandbox, require_level

        if not self.any:
            return open_sandbox(self._wanted)
        config = self._run.config
        level = None if self._run.is_trusted and require_level(self._wanted) else self._wanted
        workers = getattr(config, "workerinput", {}).get("workercount", 1)
        sandbox = open_sandbox(level, workers=workers, packages=config.getini("lm_sandbox_packages"))
        self.level = sandbox.level
        return sandbox

    def report(self) -> str | None:
        """Return how programs will be run, where there are any."""
        if not self.any:
            return None
        missing = self._run.refusals.code
        return f"lmeval: programs run at sandbox level {self._wanted}" + (
            f": NOT HERE: {missing}" if missing else ", probed"
        )
