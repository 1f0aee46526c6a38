"""What pytest and pytest-xdist do not document is used in one folder, and the plugin works where it is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.plugin.private import items, reports, workers

PLUGIN = Path(pytest_lmeval.__file__).parent / "plugin"
# Without an underscore, and documented nowhere.
UNDOCUMENTED = """
    add_global_property capturemanager countfailures dsession global_and_fixture_disabled lfplugin name2fixturedefs
    nextitem_index nfplugin notify_exception reprcrash stats stepwise stepwiseplugin torun workerinput workeroutput ???
"""
CLOSED = ("_pytest", "execnet", "pytest_jsonreport", "xdist")


def violations(source: str) -> list[str]:
    """Return ``line: name`` for every name in ``source`` that is private or undocumented in what it comes from."""
    tree = ast.parse(source)
    nodes: list[Any] = list(ast.walk(tree))
    found = sorted((node.lineno, name) for node in nodes for name in (*_used(node), *_imported(node)))
    return [f"{line}: {name}" for line, name in found]


def _used(node: Any) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            found = name in UNDOCUMENTED.split()
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) != ("os", "_exit"):
            found = _is_closed(name)
        case ast.Attribute(value=ast.Attribute() | ast.Call() | ast.Subscript(), attr=name):
            found = _is_closed(name)
        case ast.Constant(value=str(name)):  # of getattr, or the name of a plugin
            found = name in UNDOCUMENTED.split()
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
            found = _is_private(name)
        case _:
            return
    if found:
        yield name


def _imported(node: Any) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name.startswith(CLOSED))
        case ast.ImportFrom(module=str(module), names=names):
            private_names = [alias.name for alias in names if _is_private(alias.name)]
            if module.startswith(CLOSED) or private_names:
                yield ".".join([module, *private_names])


def _is_closed(name: str) -> bool:
    return _is_private(name) or name in UNDOCUMENTED.split()


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_one_folder_uses_what_is_not_documented() -> None:
    sources = {path: path.read_text("utf-8") for path in PLUGIN.rglob("*.py") if path.parent.name != "private"}
    assert {} == {path.name: found for path, source in sources.items() if (found := violations(source))}


def test_what_that_folder_uses_would_be_found_elsewhere() -> None:
    assert "_fixtureinfo" in " ".join(violations((PLUGIN / "private" / "items.py").read_text("utf-8")))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("item._request", "1: _request"),
        ("def f(session):\n    return session._collection_cache", "2: _collection_cache"),
        ("class A:\n    def f(self):\n        self.config._inicache", "3: _inicache"),
        ("getattr(item, '_fixtureinfo', None)", "1: _fixtureinfo"),
        ("hasattr(config, 'workerinput')", "1: workerinput"),
        ("config.workeroutput['x'] = 1", "1: workeroutput"),
        ("manager.getplugin('dsession')", "1: dsession"),
        ("report.when == '???'", "1: ???"),
        ("def f():\n    from _pytest.reports import TestReport", "2: _pytest.reports"),
        ("import _pytest", "1: _pytest"),
        ("from xdist.workermanage import WorkerController", "1: xdist.workermanage"),
        (
            "from pytest_lmeval.plugin.asking.state import _NO_ADAPTER",
            "1: pytest_lmeval.plugin.asking.state._NO_ADAPTER",
        ),
    ],
)
def test_a_planted_name_is_found(source: str, expected: str) -> None:
    assert [expected] == violations(source)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def f(self):\n        self._own = self._other()",
        "class A:\n    @classmethod\n    def f(cls):\n        return cls._own",
        "item.__dict__['x'] = 1",
        "__all__ = ['a']\n'The plugin dsession, in a sentence.'",
        "import pytest\nfrom pytest_lmeval.plugin.private.workers import is_worker",
    ],
)
def test_names_of_ones_own_are_left_alone(source: str) -> None:
    assert [] == violations(source)


# Where a name is missing


class NoPlugins:
    def get_plugins(self) -> list[object]:
        return [object()]

    def getplugin(self, name: str) -> None:
        return None

    def hasplugin(self, name: str) -> bool:
        return False


BARE: Any = SimpleNamespace(pluginmanager=NoPlugins(), option=SimpleNamespace())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (lambda: items.fixtures_of(BARE), None),
        (lambda: list(items.fixture_definitions(BARE, "lm_adapter")), []),
        (lambda: workers.is_worker(BARE), False),
        (lambda: reports.ini_keys(BARE), []),
        (lambda: workers.worker_input(BARE), {}),
        (lambda: workers.output_to_controller(BARE), None),
        (lambda: workers.worker_queue(BARE)(), []),
        (lambda: workers.is_controller(BARE), False),
        (lambda: workers.call_when_idle(BARE, lambda: None), None),
        (lambda: workers.output_of(BARE), None),
        (lambda: workers.worker_failures(BARE), 0),
        (lambda: workers.is_stepwise_stop(SimpleNamespace(config=BARE)), False),  # type: ignore[arg-type]  # bare
        (lambda: reports.crash_of(SimpleNamespace(longrepr="text")), None),  # type: ignore[arg-type]  # bare
        (lambda: reports.kept_reports(BARE), None),
        (lambda: reports.rerunning_plugins(BARE), []),
        (lambda: reports.suite_properties(BARE), []),
        (lambda: reports.end_capture(BARE), None),
        (lambda: reports.uncaptured(BARE).__enter__(), None),
    ],
)
def test_a_missing_name_is_replaced(found: Any, expected: object) -> None:
    assert expected == found()


def test_a_queue_of_xdist_without_a_lock_says_nothing_of_what_is_next() -> None:
    worker = SimpleNamespace(torun=object(), nextitem_index=3)
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: [worker]))
    assert [] == workers.worker_queue(config)()
