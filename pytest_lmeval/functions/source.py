"""Analyse eval functions' code: hash it, find the functions that it calls, and look for checks and scores."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType, MethodType, ModuleType
from typing import Any

from pytest_lmeval.text import is_of_package

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Folders of tests; anything else, except test files, belongs to the application.
_FOLDERS = frozenset({"tests", "test", "testing", "evals"})
_CHECKS = ("assert", "expect", "check", "verify", "should", "fail", "raises")
_LOCAL = ".<locals>"
Node = ast.AST
_NOTHING: Mapping[str, Node] = MappingProxyType({})


def may_hold_evals(data: bytes) -> bool:
    """Return True if a Python file's text suggests that it defines eval functions."""
    return b"eval_task" in data


class FunctionHashes:
    """Hashes the functions in a file."""

    def __init__(self, data: bytes) -> None:
        self._nodes = _parsed(data)
        # Check the text first, because few files contain such a call.
        self.asks_others = any(call in data for call in (b".user(", b".judge(", b".grade("))

    def of(self, name: str, decisive: str, threshold: float, called: Mapping[str, Node] = _NOTHING) -> str:
        """Return a hash of a function's code and decisive score, or "" if the file does not contain the function.

        ``name`` is the function's qualified name. ``called`` maps qualified names to the test functions that the
        function calls. The function's own name, whitespace, comments, docstrings and decorators do not affect the hash.
        """
        node = self._nodes.get(name)
        if node is None:
            return ""
        shown = [*_shown(node), *(line for each in sorted(called) for line in (each, *_shown(called[each])))]
        text = "\n".join([type(node).__name__, decisive, repr(float(threshold)), *shown])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def node(self, name: str) -> Node | None:
        """Return the tree of the function with this qualified name, or None if the file does not contain it."""
        return self._nodes.get(name)


def _parsed(data: bytes) -> dict[str, Node]:
    try:
        return dict(functions_in(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError):  # an import hook may rewrite the file
        return {}


def functions_in(tree: Node, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Yield a module's functions and methods with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from functions_in(node, prefix)


def _shown(node: Node) -> list[str]:
    if not isinstance(node, _Function):
        return [_shape(node)]
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return [_shape(each) for each in (node.args, *body)]


def _shape(value: object) -> str:
    """Return a syntax tree as text; omit empty fields, so that the text is the same in all Python versions."""
    if isinstance(value, ast.AST):
        fields = [f"{name}={_shape(each)}" for name, each in ast.iter_fields(value) if each is not None and each != []]
        return f"{type(value).__name__}({', '.join(fields)})"
    return f"[{', '.join(map(_shape, value))}]" if isinstance(value, list) else repr(value)


def of_tests(root: Path, patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate for test files below ``root``, which are in a tests folder or match one of ``patterns``."""

    def is_one(name: str) -> bool:
        path = Path(name)
        if not path.is_relative_to(root) or is_of_package(name):
            return False
        below = path.relative_to(root)
        return not _FOLDERS.isdisjoint(below.parts) or any(fnmatchcase(below.name, each) for each in patterns)

    return is_one


class TestSources:
    """The syntax trees of a project's test files, each read once.

    ``is_ours`` is a predicate for paths of test files; the analysis does not follow calls into other code.
    """

    __test__ = False

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self._is_ours = is_ours
        self._files: dict[str, Mapping[str, Node]] = {}

    def nodes_of(self, found: object) -> list[tuple[str, Node]]:
        """Return the functions in a function or class by qualified name, or [] if the source is unreadable."""
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
                self._files[path] = _parsed(Path(path).read_bytes())
            except OSError:
                self._files[path] = {}
        return self._files[path]


def reached(function: Any, sources: TestSources) -> dict[str, Node]:
    """Return the other functions that ``function`` calls, directly or indirectly, by qualified name.

    A name refers to the current object in the function's module, or in its class if the name follows ``self``.
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


def read_code(
    function: Any,
    name: str,
    decides: tuple[str, float],
    known: tuple[FunctionHashes, TestSources],
    fixtures: Callable[[], Mapping[str, Any]],
) -> tuple[str, bool]:
    """Return the hash of a function's code, and True if the function can neither assert nor score anything.

    ``decides`` contains the decisive score's name and threshold. ``known`` contains the functions in the function's
    file and in the project's tests. ``fixtures`` returns the fixtures among the function's arguments, because the
    function may call a fixture that contains checks.
    """
    hashes, sources = known
    called = reached(function, sources)
    sha256, own = hashes.of(name, *decides, called), hashes.node(name)
    # Unreadable source may contain checks.
    if own is None or any(map(may_check, [own, *called.values()])):
        return sha256, False
    used = roots(own)
    functions = [fixture for argument, fixture in fixtures().items() if argument in used]
    trees = [node for each in functions for _, node in sources.nodes_of(each)]
    trees += [node for each in functions for node in reached(each, sources).values()]
    return sha256, not any(map(may_check, trees))


def may_check(node: Node) -> bool:
    """Return True if a function's tree contains a check, or passes ``lm`` to another function."""
    return any(_checks(each) for each in ast.walk(node))


def methods_of_lm(node: Node | None) -> set[str]:
    """Return the names of the ``lm`` methods that a function's tree calls."""
    found = (each.func for each in ast.walk(node) if isinstance(each, ast.Call)) if node is not None else ()
    return {each.attr for each in found if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "lm"}


def roots(node: Node) -> set[str]:
    """Return the first name of each call in a function's tree, such as ``shop`` for ``shop.answer(row)``."""
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
    """Yield a function and all functions that it wraps, because decorators also run."""
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
    """Return the object that a call's expression names, or None if only running the code would reveal it."""
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
    # Unlike isinstance, type() runs none of the object's code: isinstance would create a lazy client like openai.chat.
    if issubclass(type(holder), ModuleType):
        return vars(holder).get(name)
    found = inspect.getattr_static(holder if issubclass(type(holder), type) else type(holder), name, None)
    if isinstance(found, staticmethod | classmethod | MethodType):
        return found.__func__
    return found


def _path_of_class(kind: object) -> str:
    if not isinstance(kind, type):
        return ""
    return str(getattr(inspect.getmodule(kind), "__file__", None) or "")
