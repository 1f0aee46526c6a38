"""The turn of an example whose set-up and tear-down would do nothing: the call alone, and one report.

A plugin of its own, registered once the examples of a file share their fixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_lmeval.plugin.private import begin_logs, check_interaction, end_turn, is_begun, is_worker

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.item import ExampleItem

_HOOKS = ("protocol", "setup", "call", "teardown", "makereport", "logreport")
_KNOWN = {"_pytest", "pytest_lmeval", "xdist", "pytest_randomly", "_hypothesis_pytestplugin"}
"""The packages whose hooks need no phase but the call."""
_WANT_ALL = {"_pytest.junitxml"}
"""What waits for the report of a tear-down."""
_MARKS = {"skip", "skipif", "xfail", "usefixtures"}


@pytest.hookimpl
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    file = item.parent
    if nextitem is None or nextitem.parent is not file or getattr(file, "shared", None) is None:
        return None
    return _take_turn(cast("ExampleItem", item))


def _take_turn(item: ExampleItem) -> bool | None:
    """Run the call of an example between two others of its file; return None where pytest has to run all phases.

    Each fixture is set up for the whole file, so that set-up and tear-down of the item have nothing to do. pytest runs
    all phases where a hook of them is implemented that is not known here, and where the example has a mark of pytest's.
    """
    file = item.parent
    if file.needs_all_phases is None:
        file.needs_all_phases = _needs_all_phases(item)
    if file.needs_all_phases or any(mark.name in _MARKS for mark in item.own_markers) or not is_begun(item):
        return None
    hooks = item.ihook
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    try:
        item.setup()
        begin_logs(item)
        _phase(item, "call", hooks.pytest_runtest_call)
        if item.session.shouldfail or item.session.shouldstop:
            _phase(item, "teardown", partial(hooks.pytest_runtest_teardown, nextitem=None))
        else:
            item.teardown()
    finally:
        end_turn(item)
    hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _phase(item: ExampleItem, when: Any, hook: Callable[..., object]) -> None:
    call = pytest.CallInfo.from_call(partial(hook, item=item), when, (pytest.exit.Exception, KeyboardInterrupt))
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
    if call.excinfo is not None and check_interaction(call, report):
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)


def _needs_all_phases(item: ExampleItem) -> bool:
    option = item.config.option
    # What waits for reports in the controller is not known in a worker.
    if (
        is_worker(item.config)
        or option.usepdb
        or option.trace
        or any(mark.name in _MARKS for mark in item.iter_markers())
    ):
        return True
    modules = {
        each.function.__module__
        for name in _HOOKS
        for each in getattr(item.ihook, f"pytest_runtest_{name}").get_hookimpls()
        # What runs around a whole protocol may do so around this one.
        if name != "protocol" or not (each.wrapper or each.hookwrapper)
    }
    return bool(modules & _WANT_ALL) or not {name.partition(".")[0] for name in modules} <= _KNOWN
