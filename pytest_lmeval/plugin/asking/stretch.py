"""A stretch: examples that have their answers, run one after the other within one call of pytest's hooks.

What pytest captures around a call it captures around all of them. The first example that prints, logs, warns or fails
is the last of its stretch, so that what was captured is its own. A plugin of its own, where items run in this process.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import pytest

from pytest_lmeval.plugin.private import name_current

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.item import ScoredItem

NAME = "lmeval-stretches"
"""What it is registered as."""
_NEXT = pytest.StashKey[int]()
"""On a session whose items run in our loop: the place of the first item that no stretch has run."""
_LONGEST_S = 0.05
_LOOPS = {"_pytest.main", __name__}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the items as pytest does, but for those that ran in a stretch; leave it to others where they do it."""
    hooks = session.config.hook.pytest_runtestloop.get_hookimpls()
    others = {each.function.__module__ for each in hooks if not (each.wrapper or each.hookwrapper)} - _LOOPS
    if others or session.testsfailed or session.config.option.collectonly:
        return None
    place = session.stash[_NEXT] = 0
    items = session.items
    while place < len(items):
        following = items[place + 1] if place + 1 < len(items) else None
        items[place].config.hook.pytest_runtest_protocol(item=items[place], nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        place = max(place + 1, session.stash[_NEXT])
    return True


def may_stretch(session: pytest.Session) -> bool:
    """Tell whether it would be noticed here what an example of a stretch prints, logs or warns of."""
    config = session.config
    plugins = config.pluginmanager
    if _NEXT not in session.stash or config.getoption("capture", "") not in _POSITIONS:
        return False
    if not plugins.hasplugin("warnings"):
        return False
    # Its limit is for one test.
    return not plugins.hasplugin("faulthandler") or not float(config.getini("faulthandler_timeout") or 0)


def call_of(hook: Callable[[], object], when: Any) -> pytest.CallInfo[Any]:
    """Return how the call of a hook ended."""
    return pytest.CallInfo.from_call(hook, when, (pytest.exit.Exception, KeyboardInterrupt))


class Passed(NamedTuple):
    """An example that passed and the one behind it; when it began, in seconds since the epoch, and how many it took."""

    item: ScoredItem
    follower: ScoredItem
    start: float
    seconds: float


class Stretch:
    """What the hooks of a call get in place of an item: it represents ``item``, whose turn it is, one after the other.

    ``follower`` returns the next one, None where no other could follow at once; it is None for a single item.
    ``passed`` are those before ``item``.
    """

    def __init__(self, item: ScoredItem, follower: Callable[[ScoredItem], ScoredItem | None] | None) -> None:
        self.item = item
        self.passed: list[Passed] = []
        self._follower = follower
        self._warned: list[warnings.WarningMessage] = []
        self._was_noisy = False
        self._until = time.perf_counter() + _LONGEST_S
        self._start = self._began = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.item, name)

    def call(self, hook: Callable[..., object]) -> pytest.CallInfo[Any]:
        """Return how the call of ``item`` ended, the last one, once ``hook`` has called :meth:`runtest`."""
        if self._follower is None:
            return call_of(partial(hook, item=self.item), "call")
        with self._listening():
            call = call_of(partial(hook, item=self), "call")
        if self.passed:
            call.start, call.duration = self._start, time.perf_counter() - self._began
        self.item.session.stash[_NEXT] = self.item.position + 1
        return call

    def runtest(self) -> None:
        """Run the examples; raise what the last one raises."""
        __tracebackhide__ = True
        assert self._follower is not None
        positions = _POSITIONS[self.item.config.option.capture]
        before = positions()
        while True:
            self._start, self._began = time.time(), time.perf_counter()
            self.item.runtest()
            now = time.perf_counter()
            if self._was_noisy or self._warned or now > self._until or positions() != before:
                return
            if (follower := self._follower(self.item)) is None:
                return
            self.passed.append(Passed(self.item, follower, self._start, now - self._began))
            self.item = follower
            name_current(follower)
            follower.begin_turn()

    def calls(self) -> Iterator[tuple[Passed, pytest.CallInfo[Any]]]:
        """Yield those that have passed, each with what pytest would know of its call: one object, for one at a time."""
        call = call_of(_nothing, "call")
        for passed in self.passed:
            call.start, call.duration, call.stop = passed.start, passed.seconds, passed.start + passed.seconds
            yield passed, call

    def pass_warnings_on(self, hooks: Any) -> None:
        """Tell the plugins what was warned of, all by the last item: one who warns ends the stretch."""
        for warning in self._warned:
            recorded = {"warning_message": warning, "nodeid": self.item.nodeid, "when": "runtest", "location": None}
            hooks.pytest_warning_recorded.call_historic(kwargs=recorded)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Notice what is logged and warned of, and what a thread or a finalizer raises."""
        handler, loggers = _Noticing(self._note_noise), []
        # Where nobody has a handler, logging prints: that is noticed, too.
        if self.item.config.pluginmanager.hasplugin("logging-plugin"):
            # As pytest does: those whose records do not reach the root have the handler, too.
            loggers = [logging.root, *filter(_is_apart, logging.root.manager.loggerDict.values())]
        in_thread, in_finalizer = threading.excepthook, sys.unraisablehook
        threading.excepthook, sys.unraisablehook = self._noting(in_thread), self._noting(in_finalizer)
        for logger in loggers:
            logger.addHandler(handler)
        try:
            with warnings.catch_warnings(record=True) as self._warned:
                yield
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
            threading.excepthook, sys.unraisablehook = in_thread, in_finalizer

    def _note_noise(self) -> None:
        self._was_noisy = True

    def _noting(self, hook: Callable[[Any], object]) -> Callable[[Any], None]:
        def noted(arguments: Any) -> None:
            self._was_noisy = True
            hook(arguments)

        return noted


class _Noticing(logging.Handler):
    def __init__(self, notice: Callable[[], None]) -> None:
        super().__init__()
        self._notice = notice

    def emit(self, record: logging.LogRecord) -> None:
        self._notice()


def _is_apart(logger: object) -> TypeGuard[logging.Logger]:
    return isinstance(logger, logging.Logger) and not logger.propagate


def _nothing() -> None:
    """Do what is left to do of a call that has been made."""


def _of_descriptors() -> object:
    try:
        return os.lseek(1, 0, os.SEEK_CUR), os.lseek(2, 0, os.SEEK_CUR)
    except OSError:  # whoever has put something else there may have written
        return object()


def _of_streams() -> object:
    try:
        return sys.stdout.buffer.tell(), sys.stderr.buffer.tell()
    except (AttributeError, OSError, ValueError):
        return object()


_POSITIONS = {"fd": _of_descriptors, "sys": _of_streams}
"""By how pytest captures output: how far it was written."""
