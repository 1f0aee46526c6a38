"""Access the fixtures, names and test phases of items."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_lmeval.plugin.private.reports import kept_reports

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

# Fixtures


_NARROW = ("function", "class")


def fixtures_of(item: pytest.Item) -> Any:
    """Return an item's fixture info, to pass as ``fixtureinfo=`` to another item with the same fixtures.

    Without ``_fixtureinfo``, return None, so that each item computes its own fixture info, which is the slowest part of
    creating an item.
    """
    return getattr(item, "_fixtureinfo", None)


def fixture_definitions(item: pytest.Item, name: str) -> Sequence[Any]:
    """Return the definitions (``argnames``, ``func``, ``scope``) of an item's fixture, with the effective one last.

    Without ``_fixtureinfo.name2fixturedefs``, return an empty sequence.
    """
    definitions: Mapping[str, Sequence[Any]] = getattr(fixtures_of(item), "name2fixturedefs", {})
    return definitions.get(name, ())


def is_of_pytest(definition: Any) -> bool:
    """Return True if a definition of ``tmp_path`` is pytest's own. Without ``_pytest.tmpdir``, return False."""
    return str(getattr(definition.func, "__module__", "")) == "_pytest.tmpdir"


def new_tmp_path(item: pytest.Item, factory: Any) -> Path:
    """Return a new folder, named like those that pytest's ``tmp_path`` creates."""
    made: Path = factory.mktemp(re.sub(r"\W", "_", item.name)[:30], numbered=True)
    return made


def drop_tmp_path(item: pytest.Item, path: Path) -> None:
    """Remove a folder from :func:`new_tmp_path` if the item passed and pytest keeps folders only of failed tests.

    Without ``tmppath_result_key``, keep the folder.
    """
    try:
        from _pytest.tmpdir import tmppath_result_key
    except ImportError:
        return
    policy = item.config.getini("tmp_path_retention_policy")
    if policy == "failed" and item.stash.get(tmppath_result_key, {}).get("call", True):
        shutil.rmtree(path, ignore_errors=True)


def is_set_up_once(item: pytest.Item) -> bool:
    """Return True if none of an item's fixtures has function or class scope.

    Without ``_fixtureinfo.name2fixturedefs``, return False.
    """
    definitions: Mapping[str, Sequence[Any]] | None = getattr(fixtures_of(item), "name2fixturedefs", None)
    return definitions is not None and all(found[-1].scope not in _NARROW for found in definitions.values())


def import_package(package: pytest.Package) -> None:
    """Import a test folder's ``__init__.py``, as pytest does at the first set-up.

    Without ``_pytest.python.importtestmodule``, do nothing, so that a broken file becomes an error in each test.
    """
    try:
        from _pytest.python import importtestmodule
    except ImportError:
        return
    importtestmodule(package.path / "__init__.py", package.config)


def closure_of(item: pytest.Item) -> Sequence[str]:
    """Return the names of all fixtures that an item needs, directly or indirectly.

    Without ``_fixtureinfo.names_closure``, return only the fixtures that it needs directly.
    """
    found: Any = getattr(fixtures_of(item), "names_closure", None) or getattr(item, "fixturenames", None)
    return found or ()


def arguments_of(item: pytest.Item) -> Sequence[str]:
    """Return the names of a test's arguments. Without ``_fixtureinfo.argnames``, return an empty sequence."""
    return getattr(fixtures_of(item), "argnames", ())


def hide_frames(item: Any, hides: Callable[[str], bool]) -> None:
    """Cut the traceback that pytest shows for an item after the last frame whose path ``hides`` does not match.

    Without ``_traceback_filter`` (before pytest 7.4), show all frames.
    """
    shown = getattr(item, "_traceback_filter", None)
    if shown is None:
        return

    def without(excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        found = shown(excinfo)
        count = len(found)
        while count > 1 and hides(str(found[count - 1].path)):
            count -= 1
        return found[:count]

    item._traceback_filter = without


def parameters_of(item: Any) -> dict[str, Any]:
    """Return an item's parameters by name, including its row. Without ``callspec``, return an empty dict."""
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}


def asker_of(request: Any) -> pytest.Item | None:
    """Return the item for which pytest is setting up a fixture. Without ``_pyfuncitem``, return None."""
    return getattr(request, "_pyfuncitem", None)


def is_parameter(definition: Any) -> bool:
    """Return True for the pseudo fixture through which pytest passes a parameter, recognized by its function's name."""
    return str(getattr(definition.func, "__name__", "")) == "get_direct_param_fixture_func"


def cached_value(definition: Any) -> tuple[bool, object, object]:
    """Return three values: whether a fixture is set up without an error, its value, and its parameter."""
    value, key, error = getattr(definition, "cached_result", None) or (None, None, True)
    return not error, value, key


def set_up_by(running: Any, definition: Any, name: str) -> bool:
    """Set up a fixture on behalf of the running item, if it uses the same definition; return True on success.

    Without the fixture manager, return False.
    """
    manager = getattr(running.session, "_fixturemanager", None)
    seen = manager.getfixturedefs(name, running) if manager is not None else None
    request = getattr(running, "_request", None)
    if not seen or seen[-1] is not definition or request is None or getattr(definition, "params", None):
        return False
    try:
        request.getfixturevalue(name)
    except Exception:  # pytest raises it again when it reaches the item that needs the fixture
        return False
    return cached_value(definition)[0]


def remade(item: Any, kind: type[Any], label: str = "") -> Any:
    """Convert a test function's item to class ``kind``, keeping its parameters, fixtures and marks.

    Without a ``label``, an item of pytest's own class changes in place, because creating a new one doubles the
    collection time. An item of a plugin's class, or for the model ``label``, is a new object.
    """
    if not label and type(item) in kind.__mro__:
        item.__class__ = kind
        return item
    callspec = getattr(item, "callspec", None)
    made = kind.from_parent(
        item.parent,
        name=f"{item.name}[{label}]" if label else item.name,
        callspec=callspec,
        fixtureinfo=fixtures_of(item),
        keywords=None if callspec is None else {callspec.id: True},
        originalname=getattr(item, "originalname", None),
    )
    if label:
        made.label = label
        note_parameter(made, label)
    return made


def show_parameters_as(item: Any, shown: str) -> None:
    """Replace the parameters in an item's name, node id and keywords with ``shown``.

    Skip attributes that the installed pytest lacks, such as ``_id`` before pytest 9.2.
    """
    raw = item.callspec.id
    name = f"{item.name.removesuffix(f'[{raw}]')}[{shown}]"
    keywords = getattr(item.keywords, "_markers", {})
    for before, after in ((raw, shown), (item.name, name)):
        if keywords.pop(before, None) is not None:
            keywords[after] = True
    item.callspec = replace(item.callspec, _idlist=[shown])
    item.name = name
    own: Any = getattr(item, "_id", None)
    if own is not None:
        item._id = type(own)(path=own.path, names=own.names, params=shown)
    elif hasattr(item, "_nodeid"):
        item._nodeid = f"{item.parent.nodeid}::{name}"


def note_parameter(item: pytest.Item, label: str) -> None:
    """Append a parameter to an item's structured id. Without ``_id`` (before pytest 9.2), do nothing."""
    own: Any = getattr(item, "_id", None)
    if own is not None:
        params = label if own.params is None else f"{own.params}][{label}"
        item._id = type(own)(path=own.path, names=own.names, params=params)


# The phases of a test


def is_begun(item: pytest.Item) -> bool:
    """Return True if an item has its fixture request, which pytest removes when the item ends.

    Without ``_request``, return False.
    """
    return bool(getattr(item, "_request", False))


def begin_logs(item: pytest.Item) -> None:
    """Prepare an item's log as the set-up of ``logging-plugin`` does. Without ``caplog_records_key``, do nothing."""
    from _pytest import logging

    if (key := getattr(logging, "caplog_records_key", None)) is not None:
        item.stash[key] = {}


_PLAIN = {
    *("nodeid", "_id", "location", "keywords", "outcome", "longrepr", "when", "user_properties", "sections"),
    *("duration", "start", "stop", "lm_word", "lmeval_alone"),
}
"""The attributes of a passed example's report if no plugin has added any."""
_OF_A_TURN = ("caplog_records_key", "caplog_handler_key", "xfailed_key", "tmppath_result_key")
"""The stash keys under which pytest stores the state of a running item."""


def end_turn(item: Any) -> None:
    """Release an item's fixtures, logs and running state, as pytest does after a test.

    In the terminal's list, replace a passed report with a report that reads from the item, because each full report
    would occupy a kilobyte until the end of the run. Do not replace a report that has output, or attributes from other
    plugins.
    """
    # Without ``_storage``, use the stash itself, which has no clear().
    stash = getattr(item.stash, "_storage", item.stash)
    for key in _keys_of_a_turn():
        if key in stash:
            del stash[key]
    if not stash and isinstance(stash, dict):
        # clear() frees the memory of an emptied dict.
        stash.clear()
    item._request = False
    item.funcargs = None
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    passed: Any = (kept_reports(item.config) or {}).get("passed")
    report: Any = passed[-1] if passed else None
    # Unless the item passed, the last report belongs to another test.
    is_own = report is not None and report.nodeid == item.nodeid and vars(report).keys() <= _PLAIN
    if is_own and not report.sections and not getattr(report, "lm_word", ""):
        kind = _report_of_item()
        kept = passed[-1] = kind.__new__(kind)
        kept.item, kept.duration, kept.start, kept.stop = item, report.duration, report.start, report.stop


@cache
def _keys_of_a_turn() -> Sequence[Any]:
    from _pytest import logging, skipping, tmpdir

    modules = (logging, logging, skipping, tmpdir)
    found = (getattr(module, name, None) for module, name in zip(modules, _OF_A_TURN, strict=True))
    return [key for key in found if key is not None]


@cache
def _report_of_item() -> Any:
    import pytest

    of_item: Mapping[str, Callable[[Any], Any]] = {
        "nodeid": lambda item: item.nodeid,
        "_id": lambda item: item._id,
        "location": lambda item: item.location,
        "keywords": lambda item: dict.fromkeys(item.keywords, 1),
        "user_properties": lambda item: [*item.user_properties],
        "sections": lambda item: [],
    }
    asking = {name: _of_item(ask) for name, ask in of_item.items()}
    always = {"outcome": "passed", "when": "call", "longrepr": None, "lm_word": ""}
    slots = ("item", "duration", "start", "stop")
    return type("TestReport", (pytest.TestReport,), {"__slots__": slots, **asking, **always})


def _of_item(ask: Callable[[Any], Any]) -> property:
    return property(lambda kept: ask(kept.item))


def check_interaction(call: pytest.CallInfo[Any], report: pytest.TestReport) -> bool:
    """Return True if pytest would call ``pytest_exception_interact``. Without pytest's check for that, return False."""
    from _pytest import runner

    check = getattr(runner, "check_interactive_exception", None)
    return check is not None and bool(check(call, report))


def keep_named(session: pytest.Session, path: Path) -> None:
    """Make ``session.isinitpath`` return True for a file named on the command line.

    From version 9 on, pytest forgets a named file if its folder is also named. Without ``_initialpaths``, do nothing.
    """
    known: frozenset[Path] | None = getattr(session, "_initialpaths", None)
    if known is not None:
        session._initialpaths = known | {path}
