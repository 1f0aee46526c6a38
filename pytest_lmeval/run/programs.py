"""How one process of a run runs what the model wrote: at which level, and whether that level is there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_lmeval.run.refusing import Refusals
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox

__all__ = ["Programs"]

_LEVELS = ("confined", "process", "container")


class _OnFirstUse:
    """A sandbox in a run that has no programs of its own: a project's code may still run one."""

    def __init__(self, level: str) -> None:
        self._level = level
        self._lock = threading.Lock()
        self._opened: Sandbox | None = None

    def __enter__(self) -> _OnFirstUse:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            if self._opened is None:
                from pytest_lmeval.sandbox import open_sandbox

                self._opened = open_sandbox(self._level)
        return getattr(self._opened, name)


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

    def open(self) -> Any:
        """Return the place where programs are run: a sandbox, or what becomes one when it is first used."""
        wanted = self._settings.sandbox
        if not self.any and wanted in _LEVELS:
            return _OnFirstUse(wanted)
        from pytest_lmeval.sandbox import open_sandbox, require_level

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
