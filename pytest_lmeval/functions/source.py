"""Eval functions in a test file's text: found without importing it, and told apart by their syntax trees."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_lmeval.errors import BadTaskFile
from pytest_lmeval.functions.data import rows_of
from pytest_lmeval.functions.declare import EvalFunction
from pytest_lmeval.types import RecordError

_NAME = "eval_task"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def may_hold_evals(data: bytes) -> bool:
    """Tell by the text of a Python file whether it may mark eval functions; those that only take ``lm`` do not."""
    return _NAME.encode() in data


class FunctionHashes:
    """The hashes of a file's functions."""

    def __init__(self, data: bytes) -> None:
        try:
            tree: ast.Module | None = ast.parse(data)
        except (SyntaxError, ValueError):  # of something that rewrites files on import
            tree = None
        self._nodes = {} if tree is None else dict(_functions(tree))

    def of(self, name: str, decisive: str, threshold: float) -> str:
        """Return 16 hexadecimal digits over what a function does and what decides, "" where it is not in the file.

        ``name`` is its qualified name. Names, blanks, comments, docstrings and decorators do not count.
        """
        node = self._nodes.get(name)
        if node is None:
            return ""
        body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
        shown = [ast.dump(each) for each in (node.args, *body)]
        text = "\n".join([type(node).__name__, decisive, repr(float(threshold)), *shown])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Found:
    """An eval function in a file's text; ``examples`` is None where only a run of the file can tell how many."""

    task: str
    function: str
    line: int
    examples: int | None


def check_file(path: Path) -> tuple[list[Found], list[RecordError]]:
    """Return the eval functions of a Python file, and what is wrong with their data files."""
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        return [], [RecordError(1, None, "unreadable", "file", error.strerror or str(error))]
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return [], [RecordError(line, None, "syntax", "file", getattr(error, "msg", str(error)))]
    found: list[Found] = []
    errors: list[RecordError] = []
    for function, node in _functions(tree):
        for call in filter(_is_ours, node.decorator_list):
            assert isinstance(call, ast.Call)
            name = _literal(call, "name")
            if not isinstance(name, str):
                continue
            taken = next((each for each in found if each.task == name), None)
            if taken is not None:
                detail = f"the task name {name!r} is taken by {taken.function}, line {taken.line}"
                errors.append(RecordError(call.lineno, name, "duplicate_task", "name", detail))
            examples: int | None = None
            data = _literal(call, "data")
            if isinstance(data, str):
                try:
                    examples = len(rows_of(EvalFunction(name, check_file, data), path.parent).rows)
                except BadTaskFile as error:
                    errors += [RecordError(call.lineno, name, "bad_data", "data", each) for each in _lines(error)]
            found.append(Found(name, function, call.lineno, examples))
    return found, errors


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _functions(node, prefix)


def _is_ours(decorator: ast.expr) -> bool:
    if not isinstance(decorator, ast.Call):
        return False
    function = decorator.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) == _NAME


def _literal(call: ast.Call, name: str) -> object:
    if name == "name" and call.args:
        value: ast.expr | None = call.args[0]
    else:
        value = next((each.value for each in call.keywords if each.arg == name), None)
    return value.value if isinstance(value, ast.Constant) else None


def _lines(error: BadTaskFile) -> list[str]:
    return [line.partition(": data: ")[2] or line for line in str(error).split("\n")]
