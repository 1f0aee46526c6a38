"""Run only the call, with one report, of an example whose set-up and tear-down would do nothing.

A separate plugin, registered once examples have their fixtures before their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import pytest

from pytest_lmeval.plugin.private.items import begin_logs, check_interaction, end_turn, is_begun
from pytest_lmeval.plugin.private.reports import shows_logs
from pytest_lmeval.plugin.private.workers import is_worker, worker_input

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.item import ScoredItem

NAME = "lmeval-turns"
"""The name of this plugin."""
NEEDS = "lmeval_needs"
"""The key in a worker's input under which the controller lists its needs."""
ALONE = "lmeval_alone"
"""Marks a report whose logstart and logfinish the worker has not sent."""
_HOOKS = (
    *(f"runtest_{name}" for name in ("protocol", "setup", "call", "teardown", "makereport", "logreport")),
    "report_teststatus",
)
_ANNOUNCED = ("runtest_logstart", "runtest_logfinish")
_KNOWN = {"_pytest", "pytest_lmeval", "xdist", "__channelexec__", "pytest_randomly", "_hypothesis_pytestplugin"}
"""Packages whose hooks need only the call; ``__channelexec__`` is xdist's module in a worker."""
_WANT_ALL = {"_pytest.junitxml": "--junitxml"}
"""Modules that wait for the report of a tear-down, and the option that enables each."""
_MARKS = {"skip", "skipif", "xfail", "usefixtures"}


class _Way(NamedTuple):
    """The hooks for the items of a collector (None: pytest runs all phases), and whether to omit logstart."""

    hooks: Any
    is_quiet: bool = False


_WAY = pytest.StashKey[_Way]()


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the call of an example between two others of its file; return None if pytest must run all phases.

    It must if the example's fixtures are not set up, if an unknown plugin hooks into a phase, or if the example has one
    of pytest's marks.
    """
    if nextitem is None or nextitem.parent is not item.parent or not getattr(item, "is_set_up", False):
        return None
    stash = cast("ScoredItem", item).parent.stash
    if (way := stash.get(_WAY, None)) is None:
        way = stash[_WAY] = _way_of(item)
    if not way.hooks or not _is_plain(item):
        return None
    _take_turn(cast("ScoredItem", item), way)
    return True


def _is_plain(item: pytest.Item) -> bool:
    return not any(mark.name in _MARKS for mark in item.own_markers) and is_begun(item)


def _take_turn(item: ScoredItem, way: _Way) -> None:
    """Run the call of an example, and report it."""
    if not way.is_quiet:
        way.hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        item.begin_turn()
        begin_logs(item)
        _report(item, _call_of(partial(way.hooks.pytest_runtest_call, item=item), "call"), way)
        if item.session.shouldfail or item.session.shouldstop:
            begin_logs(item)
            tear_down = partial(way.hooks.pytest_runtest_teardown, item=item, nextitem=None)
            _report(item, _call_of(tear_down, "teardown"), way)
        else:
            item.teardown()
    finally:
        end_turn(item)
    if not way.is_quiet:
        way.hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _call_of(hook: Callable[[], object], when: Literal["call", "teardown"]) -> pytest.CallInfo[Any]:
    return pytest.CallInfo.from_call(hook, when, (pytest.exit.Exception, KeyboardInterrupt))


def _report(item: ScoredItem, call: pytest.CallInfo[None], way: _Way) -> None:
    report = way.hooks.pytest_runtest_makereport(item=item, call=call)
    if call.when == "call" and way.is_quiet:
        report.__dict__[ALONE] = True
    way.hooks.pytest_runtest_logreport(report=report)
    if call.excinfo is not None and check_interaction(call, report):
        way.hooks.pytest_exception_interact(node=item, call=call, report=report)


def _way_of(item: pytest.Item) -> _Way:
    config, hooks = item.config, item.ihook
    needs = worker_input(config).get(NEEDS, {})
    # A worker knows the controller's plugins only from its needs.
    if (is_worker(config) and not needs.get("calls")) or why_all_phases(config, hooks):
        return _Way(None)
    if any(mark.name in _MARKS for mark in item.iter_markers()):
        return _Way(None)
    return _Way(hooks, bool(needs.get("quiet")) and not is_listened_to(hooks, _ANNOUNCED))


def why_all_phases(config: pytest.Config, hooks: Any) -> str:
    """Return the options or plugins that need all phases of every example; "" without any."""
    option = config.option
    # getoption: a blocked plugin (-p no:debugging) has no options.
    asked = {
        "--lm-items=plain": option.lm_items == "plain",
        "--pdb": config.getoption("usepdb", False),
        "--trace": config.getoption("trace", False),
        "--durations": option.durations is not None,
        "live logs": shows_logs(config),
    }
    return ", ".join([name for name, is_on in asked.items() if is_on] or _listeners(hooks, _HOOKS))


def is_listened_to(hooks: Any, names: Iterable[str]) -> bool:
    """Return True if a plugin that needs all phases implements one of the hooks ``pytest_NAME``."""
    return bool(_listeners(hooks, names))


def _listeners(hooks: Any, names: Iterable[str]) -> list[str]:
    modules = {
        each.function.__module__
        for name in names
        for each in getattr(hooks, f"pytest_{name}").get_hookimpls()
        # A wrapper of the whole protocol also wraps this one.
        if name != "runtest_protocol" or not (each.wrapper or each.hookwrapper)
    }
    packages = {name.partition(".")[0] for name in modules}
    return sorted({_WANT_ALL[each] for each in modules & _WANT_ALL.keys()} | (packages - _KNOWN))
