"""The turn of an example whose set-up and tear-down would do nothing: the call alone, and one report.

A plugin of its own, registered once examples have their fixtures before their turn.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from pytest_lmeval.plugin.asking.stretch import LOOP, Passed, Stretch, call_of, call_of_nothing, interrupts_later
from pytest_lmeval.plugin.private import (
    begin_logs,
    check_interaction,
    end_turn,
    is_begun,
    is_worker,
    report_sections,
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
_MARKS_OF_ONE = {*_MARKS, "filterwarnings"}
"""The marks of an example that is in no stretch with others: the last is heeded around a whole protocol."""


class _Way(NamedTuple):
    """How the items of a file, a module or a class take their turns.

    By which hooks, whether unannounced, and whether several in one stretch. Without hooks pytest runs all phases.
    """

    hooks: Any
    is_quiet: bool = False
    stretches: bool = False


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


def _is_plain(item: pytest.Item, marks: Container[str] = _MARKS) -> bool:
    return not any(mark.name in marks for mark in item.own_markers) and is_begun(item)


def _follower(item: ScoredItem) -> ScoredItem | None:
    """Return the example behind another one, if its call can follow in the same stretch, at once."""
    session = item.session
    if session.shouldfail or session.shouldstop or report_sections(item):
        return None
    follower, after = session.stash[LOOP].after(item)
    if after is None or not (follower.parent is item.parent is after.parent) or not isinstance(follower, type(item)):
        return None
    return follower if follower.is_set_up and _may_be_among_others(follower) and follower.is_answered else None


def _may_be_among_others(item: ScoredItem) -> bool:
    return _is_plain(item, _MARKS_OF_ONE) and item.runs_ours


def _take_turn(item: ScoredItem, way: _Way) -> None:
    """Run the calls of a stretch of examples, or of this one alone, and report each."""
    stretch = Stretch(item, _follower if way.stretches and _may_be_among_others(item) else None)
    _announce(item, way)
    try:
        item.begin_turn()
        begin_logs(item)
        try:
            call = stretch.call(way.hooks.pytest_runtest_call)
            _report_all(stretch, call, way)
        finally:
            if stretch.passed:
                # The session was interrupted before they were reported.
                _report_all(stretch, None, way)
        last = stretch.item
        if last.session.shouldfail or last.session.shouldstop:
            begin_logs(last)
            tear_down = partial(way.hooks.pytest_runtest_teardown, item=last, nextitem=None)
            _report(last, call_of(tear_down, "teardown"), way)
        else:
            last.teardown()
    finally:
        end_turn(stretch.item)
        stretch.pass_warnings_on(way.hooks)
    _announce_end(stretch.item, way)


def _report_all(stretch: Stretch, call: pytest.CallInfo[Any] | None, way: _Way) -> None:
    """Report the examples that others of their stretch followed, and the last one, if its ``call`` has ended."""
    if not stretch.passed and call is not None:
        _report(stretch.item, call, way)
        return
    with interrupts_later():
        try:
            _report_passed(stretch, way)
        finally:
            if call is not None:
                _report(stretch.item, call, way)


def _report_passed(stretch: Stretch, way: _Way) -> None:
    """Report each example that another one followed; raise afterwards what is raised, as by the handler of a signal."""
    raised, call = None, call_of_nothing()
    while stretch.passed:
        try:
            _report_one_passed(stretch.passed.popleft(), call, way)
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised


def _report_one_passed(passed: Passed, call: pytest.CallInfo[Any], way: _Way) -> None:
    """Report an example, and announce the next; nothing was captured with it."""
    item = passed.item
    passed.put_into(call)
    try:
        report = pytest.TestReport.from_item_and_call(item, call)
        item.attach_result(report, call)
        way.hooks.pytest_runtest_logreport(report=report)
    finally:
        item.teardown()
        end_turn(item)
    _announce_end(item, way)
    _announce(passed.follower, way)


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
    is_announced = is_listened_to(hooks, _ANNOUNCED)
    around = _packages(module for name in _HOOKS for module in _modules(hooks, name))
    stretches = LOOP in item.session.stash and not is_announced and around <= _KNOWN
    return _Way(hooks, bool(needs.get("quiet")) and not is_announced, stretches)


def is_listened_to(hooks: Any, names: Iterable[str]) -> bool:
    """Tell whether one of the hooks ``pytest_NAME`` is implemented by anybody who needs all phases."""
    # What runs around a whole protocol may do so around this one.
    modules = {each for name in names for each in _modules(hooks, name, wrappers=name != "runtest_protocol")}
    return bool(modules & _WANT_ALL) or not _packages(modules) <= _KNOWN


def _modules(hooks: Any, name: str, *, wrappers: bool = True) -> set[str]:
    found = getattr(hooks, f"pytest_{name}").get_hookimpls()
    return {each.function.__module__ for each in found if wrappers or not (each.wrapper or each.hookwrapper)}


def _packages(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}
