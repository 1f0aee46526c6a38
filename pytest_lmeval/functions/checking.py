"""Check the data and the task names of eval functions without running their files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import BadTaskFile
from pytest_lmeval.formats.files import files_below
from pytest_lmeval.functions.declare import NO_YIELD, EvalFunction, rows_of, task_name
from pytest_lmeval.functions.source import functions_in
from pytest_lmeval.task import name_fault
from pytest_lmeval.text import portable_path
from pytest_lmeval.types import RecordError

_NAME = "eval_task"
_USES = re.compile(rb"\beval_task\s*\(")
_UNKNOWN = object()


@dataclass(frozen=True, slots=True)
class FoundFunction:
    """An eval function found in a file's text.

    ``rows`` is the number of rows in its data, or None if it has no data. ``unchecked`` names the arguments that are
    not literals, and whose values are therefore unknown.
    """

    task: str
    function: str
    line: int
    rows: int | None = None
    unchecked: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the function in the format of ``validate --format json``, with the field names of version 0.1."""
        fields = asdict(self)
        return {**fields, "untold": fields.pop("unchecked")}


@dataclass(slots=True)
class CheckedFile:
    """The eval functions in a Python file, and their errors."""

    functions: list[FoundFunction] = field(default_factory=list)
    errors: list[RecordError] = field(default_factory=list)


def find_eval_files(paths: Iterable[Path], patterns: Sequence[str]) -> list[Path]:
    """Return the Python files in ``paths``, and the test files in folders in ``paths``, that use ``eval_task``.

    ``patterns`` match the names of test files. Files named ``task_*.py`` are task files, so skip them.
    """
    found = []
    for path in paths:
        among = files_below(path) if path.is_dir() else [path]
        named = [file for file in among if file == path or any(fnmatchcase(file.name, each) for each in patterns)]
        found += [file for file in named if file.suffix == ".py" and not file.name.startswith("task_")]
    return [file for file in dict.fromkeys(found) if _USES.search(_read(file))]


def check_files(paths: Iterable[Path]) -> dict[Path, CheckedFile]:
    """Check Python files; return the results for files with an eval function or an error.

    If two functions have the same task name, even in different files, the second one is reported as an error.
    """
    checked = {path: check_file(path) for path in paths}
    first: dict[str, str] = {}
    for path, file in checked.items():
        for each in file.functions:
            here = f"{each.function}, {portable_path(str(path))}:{each.line}"
            taken = first.setdefault(each.task, here)
            if each.task and (fault := name_fault(each.task, None if taken == here else taken)):
                file.errors.append(RecordError(each.line, each.task, "duplicate_task", "name", fault))
    return {path: file for path, file in checked.items() if file.functions or file.errors}


def check_file(path: Path) -> CheckedFile:
    """Return a Python file's eval functions and their errors, without running the file."""
    checked = CheckedFile()
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        detail = f"cannot be read: {error.strerror}"
        checked.errors.append(RecordError(1, None, "import_error", "_module", detail))
        return checked
    except (SyntaxError, ValueError, RecursionError) as error:
        detail = f"{type(error).__name__}: {getattr(error, 'msg', str(error))}"
        checked.errors.append(RecordError(getattr(error, "lineno", None) or 1, None, "import_error", "_module", detail))
        return checked
    for function, node in functions_in(tree):
        for call in filter(_is_ours, node.decorator_list):
            assert isinstance(call, ast.Call)
            _check_call(checked, path.parent, function, call)
            if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in _own(node)):
                detail = f"{function} {NO_YIELD}"
                checked.errors.append(
                    RecordError(node.lineno, checked.functions[-1].task, "bad_value", "yield", detail)
                )
    return checked


def _check_call(checked: CheckedFile, folder: Path, function: str, call: ast.Call) -> None:
    given = {each.arg: each.value for each in call.keywords if each.arg is not None}
    if call.args:
        given["name"] = call.args[0]
    known = {name: value for name in ("name", "data") if (value := _literal(given.get(name))) is not _UNKNOWN}
    unchecked = tuple(name for name in ("name", "data") if name not in known)
    task, data = known.get("name"), known.get("data")
    name = task if isinstance(task, str) else ""
    if "name" not in given and not call.args:
        name = task_name(function.rpartition(".")[2])
    rows = None
    if data is not None:
        try:
            rows = len(rows_of(EvalFunction(name, check_file, data), folder).rows)
        except BadTaskFile as error:
            checked.errors += [
                RecordError(call.lineno, name, "bad_value", "data", each) for each in _lines(error, name)
            ]
    variants, is_known = _variants(given.get("variants"))
    unchecked += () if is_known else ("variants",)
    checked.functions += [
        FoundFunction(f"{name}@{variant}" if name and variant else name, function, call.lineno, rows, unchecked)
        for variant in variants
    ]


def _variants(node: ast.expr | None) -> tuple[list[str], bool]:
    """Return the names of a function's variants, or [""] without variants, and False if the names are not literals."""
    if node is None:
        return [""], True
    names = [_literal(key) for key in node.keys] if isinstance(node, ast.Dict) else []
    is_known = len(names) > 0 and all(isinstance(name, str) for name in names)
    return (names, True) if is_known else ([""], False)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, excluding nested functions and classes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def _is_ours(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    function = decorator.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == _NAME


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _lines(error: BadTaskFile, name: str) -> list[str]:
    return [line.removeprefix(f"eval_task({name!r}): ").removeprefix("data: ") for line in str(error).split("\n")]
