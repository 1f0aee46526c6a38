"""The turn of an example whose set-up and tear-down would do nothing: the call alone, and one report.

A plugin of its own, registered once examples have their fixtures before their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from pytest_lmeval.plugin.private import (
    begin_logs,
    check_interaction,
    end_turn,
    is_begun,
    is_worker,
    shows_logs,
    worker_input,
)

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.item import ScoredItem

NAME = "lmeval-turns"
"""What it is registered as."""
NEEDS = "lmeval_needs"
"""The key under which the controller says to a worker what it needs."""
ALONE = "lmeval_alone"
"""What marks the report of an example whose beginning and end the worker has not sent."""
_HOOKS = (
    *(f"runtest_{name}" for name in ("protocol", "setup", "call", "teardown", "makereport", "logreport")),
    "report_teststatus",
)
_ANNOUNCED = ("runtest_logstart", "runtest_logfinish")
_KNOWN = {"_pytest", "pytest_lmeval", "xdist", "__channelexec__", "pytest_randomly", "_hypothesis_pytestplugin"}
"""The packages whose hooks need no phase but the call; the second of xdist's is its module in a worker."""
_WANT_ALL = {"_pytest.junitxml"}
"""What waits for the report of a tear-down."""
_MARKS = {"skip", "skipif", "xfail", "usefixtures"}


class _Way(NamedTuple):
    """How the items of a file, a module or a class take their turns: by which hooks, and whether unannounced.

    Without hooks pytest runs all phases.
    """

    hooks: Any
    is_quiet: bool = False


_WAY = pytest.StashKey[_Way]()


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if nextitem is None or nextitem.parent is not item.parent or not getattr(item, "is_set_up", False):
        return None
    return _take_turn(cast("ScoredItem", item))


def _take_turn(item: ScoredItem) -> bool | None:
    """Run the call of an example between two others of its file; return None where pytest has to run all phases.

    Its fixtures are set up, so that set-up and tear-down of the item have nothing to do. pytest runs all phases where a
    hook of them is implemented that is not known here, and where the example has a mark of pytest's.
    """
    stash = item.parent.stash
    if (way := stash.get(_WAY, None)) is None:
        way = stash[_WAY] = _way_of(item)
    hooks = way.hooks
    if not hooks or any(mark.name in _MARKS for mark in item.own_markers) or not is_begun(item):
        return None
    nodeid, location = item.nodeid, item.location
    if not way.is_quiet:
        hooks.pytest_runtest_logstart(nodeid=nodeid, location=location)
    try:
        item.begin_turn()
        begin_logs(item)
        _phase(item, "call", way, hooks.pytest_runtest_call)
        if item.session.shouldfail or item.session.shouldstop:
            _phase(item, "teardown", way, partial(hooks.pytest_runtest_teardown, nextitem=None))
        else:
            item.teardown()
    finally:
        end_turn(item)
    if not way.is_quiet:
        hooks.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    return True


def _phase(item: ScoredItem, when: Any, way: _Way, hook: Callable[..., object]) -> None:
    call = pytest.CallInfo.from_call(partial(hook, item=item), when, (pytest.exit.Exception, KeyboardInterrupt))
    report = way.hooks.pytest_runtest_makereport(item=item, call=call)
    if when == "call" and way.is_quiet:
        report.__dict__[ALONE] = True
    way.hooks.pytest_runtest_logreport(report=report)
    if call.excinfo is not None and check_interaction(call, report):
        way.hooks.pytest_exception_interact(node=item, call=call, report=report)


def _way_of(item: ScoredItem) -> _Way:
    config, hooks = item.config, item.ihook
    option, needs = config.option, worker_input(config).get(NEEDS, {})
    # Options of a plugin that is blocked (-p no:debugging) are not there.
    stops = config.getoption("usepdb", False) or config.getoption("trace", False)
    if option.lm_items == "plain" or stops or option.durations is not None:
        return _Way(None)
    # What waits for reports in the controller is not known in a worker, unless it has said so.
    if (is_worker(config) and not needs.get("calls")) or shows_logs(config) or is_listened_to(hooks, _HOOKS):
        return _Way(None)
    if any(mark.name in _MARKS for mark in item.iter_markers()):
        return _Way(None)
    return _Way(hooks, bool(needs.get("quiet")) and not is_listened_to(hooks, _ANNOUNCED))


def is_listened_to(hooks: Any, names: Iterable[str]) -> bool:
    """Tell whether one of the hooks ``pytest_NAME`` is implemented by anybody who needs all phases."""
    modules = {
        each.function.__module__
        for name in names
        for each in getattr(hooks, f"pytest_{name}").get_hookimpls()
        # What runs around a whole protocol may do so around this one.
        if name != "runtest_protocol" or not (each.wrapper or each.hookwrapper)
    }
    return bool(modules & _WANT_ALL) or not {name.partition(".")[0] for name in modules} <= _KNOWN
