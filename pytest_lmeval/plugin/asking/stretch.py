"""A stretch: examples that have their answers, run one after the other within one call of pytest's hooks.

What pytest does around a call, it does around all of them. No code but ours runs in it, so that nothing is printed, and
nothing is left to the next example. The first one that fails or warns is the last of its stretch.
"""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_lmeval.plugin.private import is_worker
from pytest_lmeval.postprocess import RULES
from pytest_lmeval.task import render

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.item import ScoredItem
    from pytest_lmeval.task import Task
    from pytest_lmeval.types import Example

LOOP = pytest.StashKey["ItemLoop"]()
"""On a session whose items run in our loop."""
_LONGEST_S = 0.05
_JSONL, _CORE = "pytest_lmeval.formats.jsonl", "pytest_lmeval.formats.core.task"
_OF_PARTS = ("checks", "turns")
"""The metrics of records whose parts are scored by others."""
_MAKE_REQUESTS = (_JSONL, _CORE, "pytest_lmeval.formats.declarative.", "pytest_lmeval.functions.")


class ItemLoop:
    """A plugin that runs the items of a session as pytest does, but for those that ran in a stretch.

    ``place`` is that of the item whose turn it is.
    """

    NAME = "lmeval-loop"

    def __init__(self) -> None:
        self.place = 0
        self._items: Sequence[Any] = ()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the items; leave it to others where they do it, and to pytest where it runs none."""
        found = session.config.hook.pytest_runtestloop.get_hookimpls()
        others = {each.function.__module__ for each in found if not (each.wrapper or each.hookwrapper)}
        if not others <= {"_pytest.main", __name__} or session.testsfailed or session.config.option.collectonly:
            return None
        session.stash[LOOP] = self
        items = self._items = session.items
        self.place = 0
        while self.place < len(items):
            item, following = items[self.place], self._at(self.place + 1)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            self.place += 1
        return True

    def after(self, item: object) -> tuple[Any, Any]:
        """Return the two items behind ``item``, whose turn it is; None for one that is not there."""
        if self._at(self.place) is not item:
            return None, None
        return self._at(self.place + 1), self._at(self.place + 2)

    def _at(self, place: int) -> Any:
        return self._items[place] if place < len(self._items) else None


def may_have_stretches(config: pytest.Config) -> bool:
    """Tell whether examples may run in stretches: without the plugin for them, warnings go where they like."""
    return config.option.lm_items != "plain" and not is_worker(config) and config.pluginmanager.hasplugin("warnings")


def runs_ours_alone(task: Any, example: Example) -> bool:
    """Tell whether code of this package alone asks and scores an example, without a judge and without a program.

    It is not looked into what scores the parts of one with checks or turns: those are taken for others'.
    """
    # By their names: a run imports the tasks that it has, and no others.
    if (kind := type(task).__module__) != _JSONL:
        return kind == _CORE
    from pytest_lmeval.loading import own_metrics

    name, rule = task.metric_name(example), task.registry.rules.get(example.post_process)
    metric = own_metrics().get(name)
    if metric is None or task.registry.metrics.get(name) is not metric or name in _OF_PARTS:
        return False
    is_own_rule = rule is not None and rule is RULES.get(example.post_process)
    return is_own_rule and not (metric.package or metric.needs_sandbox or metric.asks_judge)


def makes_requests_by_ours(task: Task) -> bool:
    """Tell whether no code of a project makes the requests of a task."""
    return type(task).__module__.startswith(_MAKE_REQUESTS)


def is_plain_render(function: object) -> bool:
    """Tell whether the fixture ``lm_render`` is ours."""
    return function is render


def call_of(hook: Callable[[], object], when: Any) -> pytest.CallInfo[Any]:
    """Return how the call of a hook ended."""
    return pytest.CallInfo.from_call(hook, when, (pytest.exit.Exception, KeyboardInterrupt))


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Have Ctrl-C take effect at the end of the block; beside the main thread, and where Python has no say, at once."""
    handle, noted = signal.getsignal(signal.SIGINT), list[Any]()
    if not callable(handle) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda _, frame: noted.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handle)
        if noted:
            handle(signal.SIGINT, noted[0])


class Passed(NamedTuple):
    """An example that passed and the one behind it; when it began, in seconds since the epoch, and how many it took."""

    item: ScoredItem
    follower: ScoredItem
    start: float
    seconds: float

    def put_into(self, call: pytest.CallInfo[Any]) -> None:
        """Have ``call`` say when this one ran: one object serves for all, one after the other."""
        call.start, call.duration, call.stop = self.start, self.seconds, self.start + self.seconds


class Stretch:
    """What the hooks of a call get in place of an item: it represents ``item``, whose turn it is, one after the other.

    ``follower`` returns the next one, None where no other could follow at once; it is None for a single item.
    ``passed`` are those before ``item`` that were not reported yet.
    """

    def __init__(self, item: ScoredItem, follower: Callable[[ScoredItem], ScoredItem | None] | None) -> None:
        self.item = item
        self.passed: deque[Passed] = deque()
        self._follower = follower
        self._warned: list[warnings.WarningMessage] = []
        self._until = time.perf_counter() + _LONGEST_S
        self._start = self._began = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.item, name)

    def call(self, hook: Callable[..., object]) -> pytest.CallInfo[Any]:
        """Return how the call of ``item`` ended, the last one, once ``hook`` has called :meth:`runtest`."""
        if self._follower is None:
            return call_of(partial(hook, item=self.item), "call")
        # pytest would take all warnings for those of the first.
        with warnings.catch_warnings(record=True) as self._warned:
            call = call_of(partial(hook, item=self), "call")
        if self.passed:
            call.start, call.duration = self._start, time.perf_counter() - self._began
        return call

    def runtest(self) -> None:
        """Run the examples; raise what the last one raises."""
        __tracebackhide__ = True
        assert self._follower is not None
        while True:
            self._start, self._began = time.time(), time.perf_counter()
            self.item.runtest()
            now = time.perf_counter()
            if self._warned or now > self._until or (follower := self._follower(self.item)) is None:
                return
            self.passed.append(Passed(self.item, follower, self._start, now - self._began))
            self.item = follower
            self.item.session.stash[LOOP].place += 1
            follower.begin_turn()

    def pass_warnings_on(self, hooks: Any) -> None:
        """Tell the plugins what was warned of, all by the last item: one who warns ends the stretch."""
        for warning in self._warned:
            recorded = {"warning_message": warning, "nodeid": self.item.nodeid, "when": "runtest", "location": None}
            hooks.pytest_warning_recorded.call_historic(kwargs=recorded)


def call_of_nothing() -> pytest.CallInfo[Any]:
    """Return a call that has ended well."""
    return call_of(lambda: None, "call")
