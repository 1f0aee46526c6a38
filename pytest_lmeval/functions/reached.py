"""The functions of a project's tests that a test function calls, and whether anything among them may check a result."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MethodType, ModuleType
from typing import Any

from pytest_lmeval.functions.source import functions_in

_CHECKS = ("assert", "expect", "check", "verify", "should", "fail", "raises")
_LOCAL = ".<locals>"
Node = ast.AST


class TestSources:
    """The syntax trees of the files of a project's tests, each read once.

    ``is_ours`` tells by its path whether a file is one of the tests; what the application defines is not followed.
    """

    __test__ = False

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self._is_ours = is_ours
        self._files: dict[str, Mapping[str, Node]] = {}

    def nodes_of(self, found: object) -> list[tuple[str, Node]]:
        """Return a function's or a class's functions with their qualified names; none where they cannot be read."""
        kind = inspect.unwrap(found) if callable(found) and not isinstance(found, type) else found
        code = getattr(kind, "__code__", None)
        path = code.co_filename if code is not None else _path_of_class(kind)
        if not path or not self._is_ours(path):
            return []
        known = self._nodes_in(path)
        name = getattr(kind, "__qualname__", "").partition(_LOCAL)[0]
        if not isinstance(kind, type):
            return [(name, known[name])] if name in known else []
        return [(each, node) for each, node in known.items() if each.startswith(f"{name}.")]

    def _nodes_in(self, path: str) -> Mapping[str, Node]:
        if path not in self._files:
            try:
                with open(path, "rb") as file:
                    tree = ast.parse(file.read())
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._files[path] = {}
            else:
                self._files[path] = dict(functions_in(tree))
        return self._files[path]


def reached(function: Any, sources: TestSources) -> dict[str, Node]:
    """Return the functions that ``function`` calls, and those that these call, by qualified name, itself left out.

    What is called is looked up among the names of its module, as they are now, and in its class for ``self``.
    """
    found: dict[str, Node] = {}
    waiting = [*_wrappers(function)]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for name, node in sources.nodes_of(one):
            found.setdefault(name, node)
            waiting += _called(one, name, node)
    found.pop(getattr(inspect.unwrap(function), "__qualname__", ""), None)
    return found


def may_check(node: Node) -> bool:
    """Tell whether a function's tree has anything by which a result may be judged, or a call that is given ``lm``."""
    return any(_checks(each) for each in ast.walk(node))


def roots(node: Node) -> set[str]:
    """Return the names that calls in a function begin with: ``shop`` of ``shop.answer(row)``."""
    found = set()
    for each in ast.walk(node):
        called = each.func if isinstance(each, ast.Call) else None
        while isinstance(called, ast.Attribute | ast.Subscript):
            called = called.value
        if isinstance(called, ast.Name):
            found.add(called.id)
    return found


def _checks(node: Node) -> bool:
    if isinstance(node, ast.Assert | ast.Raise):
        return True
    if isinstance(node, ast.With | ast.AsyncWith):
        return any(_is_check(each.context_expr) for each in node.items)
    if not isinstance(node, ast.Call):
        return False
    given = [*node.args, *(each.value for each in node.keywords)]
    return _is_check(node.func) or any(isinstance(each, ast.Name) and each.id == "lm" for each in given)


def _is_check(node: Node) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return str(name).lstrip("_").lower().startswith(_CHECKS)


def _wrappers(function: Any) -> Iterator[Any]:
    """Yield a function and, one after the other, what it wraps: decorators run, too."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)


def _called(function: Any, name: str, node: Node) -> list[Any]:
    names = _names_of(function)
    owner = names.get(name.rpartition(".")[0])
    found: list[Any] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and (target := _target(each.func, names, owner)) is not None:
            found += _wrappers(target)
    return found


def _names_of(function: Any) -> Mapping[str, Any]:
    if isinstance(function, type):
        return vars(inspect.getmodule(function) or function)
    names: Mapping[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    return names


def _target(node: Node, names: Mapping[str, Any], owner: Any) -> Any:
    """Return what the expression of a call stands for; None where that shows only when it runs."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        holder = owner
    else:
        holder = _target(node.value, names, owner)
    return _member(holder, node.attr)


def _member(holder: Any, name: str) -> Any:
    if holder is None:
        return None
    if isinstance(holder, ModuleType):
        return vars(holder).get(name)
    found = inspect.getattr_static(holder if isinstance(holder, type) else type(holder), name, None)
    if isinstance(found, staticmethod | classmethod | MethodType):
        return found.__func__
    return found


def _path_of_class(kind: object) -> str:
    if not isinstance(kind, type):
        return ""
    return str(getattr(inspect.getmodule(kind), "__file__", None) or "")
