"""The turn of an example whose set-up and tear-down would do nothing: the call alone, and one report.

A plugin of its own, registered once examples have their fixtures before their turn.
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
_WANT_ALL = {"_pytest.junitxml": "--junitxml"}
"""What waits for the report of a tear-down, by its option."""
_MARKS = {"skip", "skipif", "xfail", "usefixtures"}


class _Way(NamedTuple):
    """How the items of a file, a module or a class take their turns.

    By which hooks, and whether unannounced. Without hooks pytest runs all phases.
    """

    hooks: Any
    is_quiet: bool = False


_WAY = pytest.StashKey[_Way]()


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the call of an example between two others of its file; return None where pytest has to run all phases.

    Its fixtures are set up, so that set-up and tear-down of the item have nothing to do. pytest runs all phases where a
    hook of them is implemented that is not known here, and where the example has a mark of pytest's.
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
    _announce(item, way)
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
    _announce_end(item, way)


def _call_of(hook: Callable[[], object], when: Literal["call", "teardown"]) -> pytest.CallInfo[Any]:
    """Return how the call of a hook ended."""
    return pytest.CallInfo.from_call(hook, when, (pytest.exit.Exception, KeyboardInterrupt))


def _announce(item: pytest.Item, way: _Way) -> None:
    if not way.is_quiet:
        way.hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)


def _announce_end(item: pytest.Item, way: _Way) -> None:
    if not way.is_quiet:
        way.hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


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
    # What waits for reports in the controller is not known in a worker, unless it has said so.
    if (is_worker(config) and not needs.get("calls")) or why_all_phases(config, hooks):
        return _Way(None)
    if any(mark.name in _MARKS for mark in item.iter_markers()):
        return _Way(None)
    return _Way(hooks, bool(needs.get("quiet")) and not is_listened_to(hooks, _ANNOUNCED))


def why_all_phases(config: pytest.Config, hooks: Any) -> str:
    """Return which option or plugin wants all phases of every example; an empty text if none does."""
    option = config.option
    # Options of a plugin that is blocked (-p no:debugging) are not there.
    asked = {
        "--lm-items=plain": option.lm_items == "plain",
        "--pdb": config.getoption("usepdb", False),
        "--trace": config.getoption("trace", False),
        "--durations": option.durations is not None,
        "live logs": shows_logs(config),
    }
    return ", ".join([name for name, is_on in asked.items() if is_on] or _listeners(hooks, _HOOKS))


def is_listened_to(hooks: Any, names: Iterable[str]) -> bool:
    """Tell whether one of the hooks ``pytest_NAME`` is implemented by a plugin that needs all phases."""
    return bool(_listeners(hooks, names))


def _listeners(hooks: Any, names: Iterable[str]) -> list[str]:
    # What runs around a whole protocol may do so around this one.
    modules = {each for name in names for each in _modules(hooks, name, wrappers=name != "runtest_protocol")}
    return sorted({_WANT_ALL[each] for each in modules & _WANT_ALL.keys()} | (_packages(modules) - _KNOWN))


def _modules(hooks: Any, name: str, *, wrappers: bool = True) -> set[str]:
    found = getattr(hooks, f"pytest_{name}").get_hookimpls()
    return {each.function.__module__ for each in found if wrappers or not (each.wrapper or each.hookwrapper)}


def _packages(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}
