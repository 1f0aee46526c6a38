"""Collect eval functions: parametrize them with their rows, and convert pytest's items to examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.functions.declare import NO_YIELD, DataRows, EvalFunction, declared, has_yield, row_text, rows_of
from pytest_lmeval.functions.source import FunctionHashes, TestSources, methods_of_lm, of_tests, read_code
from pytest_lmeval.functions.task import FunctionTask
from pytest_lmeval.leaderboard.board import info_of
from pytest_lmeval.plugin.asking.state import begin_spares
from pytest_lmeval.plugin.collect.collected import collected, repeated_by_plugin
from pytest_lmeval.plugin.collect.locate import is_function
from pytest_lmeval.plugin.evals.item import EvalItem, follow, session_of
from pytest_lmeval.plugin.private.items import (
    arguments_of,
    fixture_definitions,
    parameters_of,
    remade,
    show_parameters_as,
)
from pytest_lmeval.plugin.settings.models import labels_of
from pytest_lmeval.plugin.settings.settings import scrubber_of_run, selected_places
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.text import item_name, node_name, node_path, unique
from pytest_lmeval.types import Example

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import RunState

_MADE = "lmeval_marks"
_REPEAT = "__pytest_repeat_step_number"
_NAMES = "begin its name with test, or with a prefix in python_functions of the ini file"


@dataclass(slots=True)
class _Given:
    """An eval function's selected rows, with their positions among all rows and their ``labels`` for pytest."""

    data: DataRows
    places: Sequence[int] = ()
    available: int = 0
    labels: Sequence[str] = ()


@dataclass(slots=True)
class _File:
    """A test file, with its path relative to the project's root as ``shown``."""

    shown: Path
    hashes: FunctionHashes
    sources: TestSources
    sha256: str
    used: dict[str, FunctionTask] = field(default_factory=dict)


_FILES = pytest.StashKey[dict[Path, _File]]()
_SOURCES = pytest.StashKey[TestSources]()


def parametrize(collector: pytest.Collector, function: Any) -> None:
    """Parametrize an eval function with its variants and the rows of its data; bad data causes a collection error."""
    begin_spares(collector.config)
    task = declared(function)
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        _refuse(collector, f"{_qualified(function)}: eval_task needs a plain method: remove @{kind}")
    if task is None:
        return
    marks, made = list(getattr(function, "pytestmark", ())), []
    given = None
    if task.variants:
        if any(mark.name == "parametrize" for mark in marks):
            why = f"eval_task({task.name!r}) has variants: give the other parameters as rows, not by parametrize"
            _refuse(collector, f"{_qualified(function)}: {why}")
        # Parametrize by name, and pass the values later, because two variants may have equal values.
        made.append(pytest.mark.parametrize("variant", [*task.variants], ids=[*task.variants]).mark)
    if task.data is not None:
        given = _given(collector, task)
        made.append(pytest.mark.parametrize("row", list(given.data.rows), ids=given.labels).mark)
    function.pytestmark = [*marks, *made]
    vars(function)[_MADE] = (made, given)


def _given(collector: pytest.Collector, task: EvalFunction) -> _Given:
    try:
        data = rows_of(task, collector.path.parent)
    except LmevalError as error:
        _refuse(collector, f"{collector.path.name}: {error}")
    places = selected_places(collector.config, task.name, len(data.rows))
    kept = data.at(places)
    if scrubber := scrubber_of_run(collector.config):
        ids = EvalNames(scrubber)
        kept = DataRows(kept.rows, [ids.id(each) for each in kept.ids], kept.path, kept.sha256)
    names = set[str]()
    return _Given(kept, places, len(data.rows), [unique(item_name(each), names) for each in kept.ids])


def examples_of(collector: pytest.Collector, function: Any, items: Sequence[Any]) -> list[Any]:
    """Return a test function's items, and convert evals to examples."""
    task = declared(function)
    names = EvalNames(scrubber_of_run(collector.config))
    if task is not None:
        # If the function is collected again as a method of another class, its rows are read again.
        made, rows = vars(function).get(_MADE, ((), None))
        if made:
            function.pytestmark = [mark for mark in function.pytestmark if mark not in made]
        if not items:
            name = _qualified(function)
            _refuse(collector, f"{name} is not a test for pytest, so eval_task({task.name!r}) never runs: {_NAMES}")
        if not task.variants:
            return _declared_items(collector, task, rows, items, names)
        return [
            one
            for name, value in task.variants.items()
            for one in _declared_items(
                collector,
                replace(task, name=f"{task.name}@{name}", variants={name: value}),
                rows,
                _of_variant(items, name, value),
                names,
            )
        ]
    plain = enumerate(items)
    return [one for place, item in plain for one in _plain(collector, function, item, names, place)]


def _prepare(items: Sequence[Any], session: pytest.Session) -> Callable[[RunState], None] | None:
    """Return a function that registers hooks for the eval functions of a planned run, or None if there are no evals."""
    if not any(map(is_function, items)):
        return None
    from pytest_lmeval.plugin.evals.process import AsyncFixtures, EvalHooks, instances_of_others

    others = instances_of_others(session.items)
    if safe := session.config.getini("lm_safe_fixtures"):
        from pytest_lmeval.plugin.evals.safe import check_safe

        check_safe(safe)

    def begin(state: RunState) -> None:
        evals, register = session_of(state), state.config.pluginmanager.register
        register(EvalHooks(evals), f"lmeval-evals-{state.label}")
        register(AsyncFixtures(evals.shared.loop, others), f"lmeval-async-{state.label}")

    return begin


def refuse_unittest(collector: pytest.Collector, kind: type) -> None:
    """Raise CollectError if a unittest.TestCase, which calls its own methods, contains an eval."""
    for name in dir(kind):
        if declared(getattr(kind, name, None)) is not None:
            why = "unittest calls the methods of a TestCase itself: move the eval out of the class"
            _refuse(collector, f"{kind.__qualname__}.{name}: {why}, or do not derive the class from TestCase")


def warn_of_hook(collector: pytest.Collector, name: str) -> None:
    """Warn about a hook in a test file, because pytest never calls it."""
    if not collector.config.pluginmanager.is_registered(getattr(collector, "obj", None)):
        why = f"{name} is a hook: pytest calls it in a conftest.py or a plugin, never in a test file"
        collector.warn(pytest.PytestCollectionWarning(why))


def _refuse(collector: pytest.Collector, message: str) -> NoReturn:
    collected(collector.config).bad_files.append(collector.nodeid)
    raise collector.CollectError(message) from None


def _of_variant(items: Sequence[Any], name: str, value: object) -> list[Any]:
    found = [item for item in items if parameters_of(item)["variant"] is name]
    for item in found:
        parameters_of(item)["variant"] = value
    return found


def _declared_items(
    collector: Any, spec: EvalFunction, rows: _Given | None, items: Sequence[Any], names: EvalNames
) -> list[Any]:
    names.begin_task()
    file = _file_of(collector)
    # Items combine rows with parameters, and some rows may be deselected.
    whole = len(items) if rows is None else rows.available * len(items) // len(rows.data.rows)
    task = _new_task(collector, spec.name, file, whole, spec, rows)
    name = _qualified(items[0].function)
    _read(task, file, items[0], name)
    made, labels = [], labels_of(collector.config) if collector.config.option.lm_models else []
    line = _line(items[0])
    for place, item in enumerate(items):
        parameters = parameters_of(item)
        example = _example((item, parameters), spec, rows, names, (line, place))
        names.rename(item)
        _refuse_repeated(collector, item, parameters)
        task.examples.append(example)
        made += _made(item, labels, task, example, spec, name)
    return made


def _plain(collector: Any, function: Any, item: Any, names: EvalNames, place: int) -> list[Any]:
    """If an item without ``eval_task`` uses this plugin's ``lm``, convert it to an example in its file's task."""
    if not isinstance(item, pytest.Function) or "lm" not in item.fixturenames or not is_ours(item):
        return [item]
    if has_yield(item.function):
        _refuse(collector, f"{item.nodeid} takes lm and {NO_YIELD}")
    parameters = parameters_of(item)
    _refuse_repeated(collector, item, parameters)
    labels = labels_of(collector.config)
    file = _file_of(collector)
    name = file.shown.with_suffix("").as_posix()
    task = file.used.get(name) or _new_task(collector, name, file, 0, None, None)
    known = collected(collector.config).tasks
    known[name] = replace(known[name], available=(known[name].available or 0) + 1)
    qualified = _qualified(function)
    if qualified not in task.code:
        _read(task, file, item, qualified)
    id = names.id(item.nodeid.partition("::")[2])
    example = Example(id, row_text(parameters), (), task.metric, line=_line(item), place=place)
    names.rename(item)
    task.examples.append(example)
    if not inspect.iscoroutinefunction(item.function):
        return _made(item, labels, task, example, None, qualified)
    if labels:
        _refuse(collector, f"{item.nodeid}: with several models an async test needs @eval_task")
    return [follow(item, task, example, qualified)]


def _read(task: FunctionTask, file: _File, item: Any, name: str) -> None:
    """Record a function's code hash, and whether the function can score anything."""

    def fixtures() -> dict[str, Any]:
        definitions = {each: fixture_definitions(item, each) for each in arguments_of(item)}
        return {each: found[-1].func for each, found in definitions.items() if found}

    least = [f"{score} {of['threshold']}" for score, of in sorted(task.scores.items()) if "threshold" in of]
    fails = sorted(f"fails {each.__qualname__}" for each in task.fails)
    decides = (" ".join([task.decisive, *least, *fails]), task.threshold_of)
    task.code[name], is_idle = read_code(item.obj, name, decides, (file.hashes, file.sources), fixtures)
    if is_idle:
        task.idle.add(name)
    if file.hashes.asks_others:
        called = methods_of_lm(file.hashes.node(name))
        task.asks_user = task.asks_user or "user" in called
        task.asks_judge = task.asks_judge or not called.isdisjoint(("judge", "grade"))


def is_ours(item: pytest.Item) -> bool:
    """Return True if an item's ``lm`` fixture is the plugin's, not the project's."""
    definitions = fixture_definitions(item, "lm")
    return bool(definitions) and str(definitions[-1].func.__module__).startswith("pytest_lmeval.")


def _made(
    item: Any, labels: Sequence[str], task: FunctionTask, example: Example, spec: EvalFunction | None, name: str
) -> list[EvalItem]:
    """Convert an item to one example for each model."""
    made = [remade(item, EvalItem, label) for label in labels or [""]]
    for one in made:
        one.assign(task, example, spec, name)
    return made


def _refuse_repeated(collector: pytest.Collector, item: Any, parameters: Mapping[str, Any]) -> None:
    if _REPEAT not in parameters:
        return
    mark = item.get_closest_marker("repeat")
    if refusal := repeated_by_plugin(item.config, int(mark.args[0]) if mark is not None else 0):
        _refuse(collector, f"{item.nodeid}: {refusal}")


def _example(
    of: tuple[Any, Mapping[str, Any]],
    spec: EvalFunction,
    rows: _Given | None,
    names: EvalNames,
    where: tuple[int, int],
) -> Example:
    """Create an item's example, with its parameters, line and number."""
    (item, parameters), (line, number) = of, where
    metadata = {**spec.metadata, **({"tags": list(spec.tags)} if spec.tags else {})}
    if spec.variants:
        # The variants of an example are compared, so they share one id and one content.
        parameters = {name: value for name, value in parameters.items() if name != "variant"}
    if rows is None:
        callspec = getattr(item, "callspec", None)
        id, place = item.originalname if spec.variants else item.name if callspec is None else callspec.id, number
        shown = row_text(parameters)
    else:
        others = {name: value for name, value in parameters.items() if name != "row"}
        if others:
            id, place = _id_beside(item.callspec.id, rows, number, parameters["row"]), number
        else:
            at = number % len(rows.data.ids) if spec.variants else item.callspec.indices["row"]
            id, place = rows.data.ids[at], rows.places[at]
        shown = row_text({"row": parameters["row"], **others} if others else parameters["row"])
    return Example(names.id(id), shown, (), "function", metadata=metadata, line=line, place=place)


def _id_beside(shown: str, rows: _Given, number: int, row: object) -> str:
    """Return pytest's id for a row and other parameters, with the row's id in place of its label."""
    # Rows are the last parameter, so they change with each call.
    at = number % len(rows.data.rows)
    if rows.data.rows[at] is not row or not shown.endswith(rows.labels[at]):
        return shown
    return shown.removesuffix(rows.labels[at]) + rows.data.ids[at]


def _new_task(
    collector: Any, name: str, file: _File, available: int, spec: EvalFunction | None, rows: _Given | None
) -> FunctionTask:
    place = node_path(file.shown.as_posix())
    task = FunctionTask(
        name,
        collector.path,
        file.sha256,
        spec.threshold if spec is not None else 1.0,
        (spec.score or "") if spec is not None else "",
        source={"path": rows.data.path, "sha256": rows.data.sha256} if rows is not None and rows.data.path else {},
        scores=spec.scores if spec is not None else {},
        numbered=rows is not None and rows.data.numbered,
        fails=spec.fails if spec is not None else (),
        variant=next(iter(spec.variants), "") if spec is not None else "",
    )
    file.used[name] = task
    floor = spec.min_score if spec is not None else None
    info = replace(info_of(task, place, selected=0), available=available, min_score=floor, scores=task.scores)
    tasks = collected(collector.config)
    tasks.preparing.add(_prepare)
    try:
        tasks.add(info)
    except LmevalError as error:
        _refuse(collector, str(error))
    return task


def _file_of(collector: Any) -> _File:
    config = collector.config
    files: dict[Path, _File] = config.stash.setdefault(_FILES, {})
    path: Path = collector.path
    if path not in files:
        from hashlib import sha256

        data = path.read_bytes()
        sources = config.stash.setdefault(
            _SOURCES, TestSources(of_tests(config.rootpath, (*config.getini("python_files"), "conftest.py")))
        )
        shown = path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path
        files[path] = _File(shown, FunctionHashes(data), sources, sha256(data).hexdigest())
    return files[path]


def _qualified(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))


def _line(item: Any) -> int:
    code = getattr(inspect.unwrap(item.function), "__code__", None)
    return 0 if code is None else int(code.co_firstlineno)


class EvalNames:
    """Makes examples' ids and names unique, removes secrets from them, and makes the names printable."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._hide: Callable[[str], str] = scrubber.scrub_answer if scrubber else str
        self._ids: set[str] = set()
        self._names: set[str] = set()

    def begin_task(self) -> None:
        """Forget the previous task's ids, because a function's variants have the same ids."""
        self._ids.clear()

    def id(self, raw: str) -> str:
        """Return a unique id for an example, without secrets."""
        return unique(self._hide(raw), self._ids)

    def rename(self, item: Any) -> None:
        """Rename an item with parameters so that its name is printable."""
        callspec = getattr(item, "callspec", None)
        raw = "" if callspec is None else self._hide(callspec.id)
        shown = raw if raw.isidentifier() or not raw else node_name(raw)
        if callspec is not None and shown != callspec.id:
            show_parameters_as(item, unique(shown, self._names))
