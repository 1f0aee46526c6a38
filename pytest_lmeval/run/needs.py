"""What examples need besides an answer, a method of the adapter or a sandbox, and what becomes of them without it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.engine.evaluate import runs_code
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.functions import METRIC

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import Task
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.run.settings import RunSettings
    from pytest_lmeval.sandbox import Sandbox
    from pytest_lmeval.types import Example

_LEVELS = ("confined", "process", "container")


class Refusals:
    """Why examples are not asked; empty of a run that can score everything."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tasks: Mapping[str, str] = {}
        self.code = ""

    def look_at(self, tasks: Iterable[Task], adapter: Any) -> None:
        """Find the tasks that need what ``adapter`` cannot do."""
        lacking = {task.name: task.needs for task in tasks if task.needs and not _has(adapter, task.needs)}
        self._tasks = {name: _reason(adapter, need) for name, need in lacking.items()}

    def look_at_code(self, reason: str | None) -> None:
        """Refuse what runs code, for ``reason``, if there is one."""
        self.code = reason or ""

    def runs_code(self, task: Task, example: Example) -> bool:
        """Tell whether to score the example is to run what the model wrote."""
        return runs_code(task, example, self._registry)

    def reason(self, task: Task, example: Example) -> str:
        """Return why the example is not asked, or an empty text."""
        if self.code and self.runs_code(task, example):
            return self.code
        return self._tasks.get(task.name, "")


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


def check_answers(units: Sequence[Any], adapter: Any) -> None:
    """Raise UsageError where ``adapter`` answers nothing and any of ``units`` needs an answer: all but functions do."""
    if getattr(adapter, "answers", True):
        return
    asking = Counter(unit.task.name for unit in units if unit.task.metric != METRIC)
    if asking:
        from pytest_lmeval.adapters.resolve import adapter_name

        tasks = ", ".join(f"{task} ({count})" for task, count in asking.items())
        raise UsageError(
            f"adapter {adapter_name(adapter)} asks no model, and these examples need one: {tasks}; say which with "
            "--lm-adapter=SPEC, or select eval functions alone"
        )


def _has(adapter: Any, method: str) -> bool:
    return callable(getattr(adapter, method, None))


def _reason(adapter: Any, need: str) -> str:
    from pytest_lmeval.adapters.resolve import adapter_name

    return f"adapter {adapter_name(adapter)} has no {need}, which this task is scored by; nothing was asked"
