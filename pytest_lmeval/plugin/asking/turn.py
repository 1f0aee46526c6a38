"""Run only the call phase for examples whose set-up and tear-down would do nothing.

This module is a separate plugin, registered at the first set-up of fixtures that further examples share.
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
"""The key in a worker's input that holds the controller's needs."""
ALONE = "lmeval_alone"
"""The mark of a report for which the worker has sent neither logstart nor logfinish."""
_HOOKS = (
    *(f"runtest_{name}" for name in ("protocol", "setup", "call", "teardown", "makereport", "logreport")),
    "report_teststatus",
)
_ANNOUNCED = ("runtest_logstart", "runtest_logfinish")
_KNOWN = {"_pytest", "pytest_lmeval", "xdist", "__channelexec__", "pytest_randomly", "_hypothesis_pytestplugin"}
"""Packages whose hooks only need the call phase; ``__channelexec__`` is xdist's module in a worker."""
_WANT_ALL = {"_pytest.junitxml": "--junitxml"}
"""Modules that need a tear-down's report, with the option that enables each module."""
_MARKS = {"skip", "skipif", "xfail", "usefixtures"}


class _Way(NamedTuple):
    """The hooks for a collector's items (None if pytest runs all phases), and whether to omit logstart."""

    hooks: Any
    is_quiet: bool = False


_WAY = pytest.StashKey[_Way]()


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run only an example's call phase if possible, or return None so that pytest runs all phases.

    The last example in a file needs all phases. Other examples also need them if their fixtures are not set up, if they
    have one of pytest's marks, or if an unknown plugin hooks into a phase.
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
    """Run an example's call phase, and report it."""
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
    # Workers learn about the controller's plugins only through its needs.
    if (is_worker(config) and not needs.get("calls")) or why_all_phases(config, hooks):
        return _Way(None)
    if any(mark.name in _MARKS for mark in item.iter_markers()):
        return _Way(None)
    return _Way(hooks, bool(needs.get("quiet")) and not is_listened_to(hooks, _ANNOUNCED))


def why_all_phases(config: pytest.Config, hooks: Any) -> str:
    """Return the names of options or plugins that need all phases of every example, or ""."""
    option = config.option
    # Use getoption: a blocked plugin (-p no:debugging) has no options.
    asked = {
        "--lm-items=plain": option.lm_items == "plain",
        "--pdb": config.getoption("usepdb", False),
        "--trace": config.getoption("trace", False),
        "--durations": option.durations is not None,
        "live logs": shows_logs(config),
    }
    return ", ".join([name for name, is_on in asked.items() if is_on] or _listeners(hooks, _HOOKS))


def is_listened_to(hooks: Any, names: Iterable[str]) -> bool:
    """Return True if a plugin that needs all phases implements one of the ``pytest_NAME`` hooks."""
    return bool(_listeners(hooks, names))


def _listeners(hooks: Any, names: Iterable[str]) -> list[str]:
    modules = {
        each.function.__module__
        for name in names
        for each in getattr(hooks, f"pytest_{name}").get_hookimpls()
        # A wrapper around the whole protocol also wraps this one.
        if name != "runtest_protocol" or not (each.wrapper or each.hookwrapper)
    }
    packages = {name.partition(".")[0] for name in modules}
    return sorted({_WANT_ALL[each] for each in modules & _WANT_ALL.keys()} | (packages - _KNOWN))
