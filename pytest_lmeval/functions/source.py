"""The code of eval functions by its syntax tree: a hash of what it does, what it calls, and whether that can judge."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType, MethodType, ModuleType
from typing import Any

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# What lies below a folder of such a name is the project's tests; all else but test files is the application.
_FOLDERS = frozenset({"tests", "test", "testing", "evals"})
_CHECKS = ("assert", "expect", "check", "verify", "should", "fail", "raises")
_LOCAL = ".<locals>"
Node = ast.AST
_NOTHING: Mapping[str, Node] = MappingProxyType({})


def may_hold_evals(data: bytes) -> bool:
    """Tell by the text of a Python file whether it may mark eval functions; those that only take ``lm`` do not."""
    return b"eval_task" in data


class FunctionHashes:
    """The hashes of a file's functions."""

    def __init__(self, data: bytes) -> None:
        self._nodes = _parsed(data)
        # Few files have such a call.
        self.may_talk = b".user(" in data

    def of(self, name: str, decisive: str, threshold: float, called: Mapping[str, Node] = _NOTHING) -> str:
        """Return 16 hexadecimal digits over what a function does and what decides, "" where it is not in the file.

        ``name`` is its qualified name, ``called`` are the functions of the project's tests that it calls, by theirs.
        Its own name, blanks, comments, docstrings and decorators do not count.
        """
        node = self._nodes.get(name)
        if node is None:
            return ""
        shown = [*_shown(node), *(line for each in sorted(called) for line in (each, *_shown(called[each])))]
        text = "\n".join([type(node).__name__, decisive, repr(float(threshold)), *shown])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def node(self, name: str) -> Node | None:
        """Return the tree of a function by its qualified name; None where it is not in the file."""
        return self._nodes.get(name)


def _parsed(data: bytes) -> dict[str, Node]:
    try:
        return dict(functions_in(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError):  # such as the source of a language that an import hook rewrites
        return {}


def functions_in(tree: Node, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Yield the functions and methods of a module with their qualified names."""
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
    """Return a syntax tree as text that no version of Python writes otherwise: what is empty is left out."""
    if isinstance(value, ast.AST):
        fields = [f"{name}={_shape(each)}" for name, each in ast.iter_fields(value) if each is not None and each != []]
        return f"{type(value).__name__}({', '.join(fields)})"
    return f"[{', '.join(map(_shape, value))}]" if isinstance(value, list) else repr(value)


def of_tests(root: Path, patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function from a path to whether it is a test file: below ``root``, by its folder or by ``patterns``."""

    def is_one(name: str) -> bool:
        path = Path(name)
        if not path.is_relative_to(root) or "site-packages" in path.parts:
            return False
        below = path.relative_to(root)
        return not _FOLDERS.isdisjoint(below.parts) or any(fnmatchcase(below.name, each) for each in patterns)

    return is_one


class TestSources:
    """The syntax trees of the files of a project's tests, each read once.

    ``is_ours`` takes a path: is the file one of the tests? What the application defines is not followed.
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
                self._files[path] = _parsed(Path(path).read_bytes())
            except OSError:
                self._files[path] = {}
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


def read_code(
    function: Any,
    name: str,
    decides: tuple[str, float],
    known: tuple[FunctionHashes, TestSources],
    fixtures: Callable[[], Mapping[str, Any]],
) -> tuple[str, bool]:
    """Return the hash of the code of a function called ``name``, and whether it can neither assert nor score anything.

    ``decides`` are the score that decides and the threshold, ``known`` are what its file and the project's tests hold.
    ``fixtures`` returns the fixtures of its arguments: it may call their values, and these may check.
    """
    hashes, sources = known
    called = reached(function, sources)
    sha256, own = hashes.of(name, *decides, called), hashes.node(name)
    # Source that cannot be read may check.
    if own is None or any(map(may_check, [own, *called.values()])):
        return sha256, False
    used = roots(own)
    functions = [fixture for argument, fixture in fixtures().items() if argument in used]
    trees = [node for each in functions for _, node in sources.nodes_of(each)]
    trees += [node for each in functions for node in reached(each, sources).values()]
    return sha256, not any(map(may_check, trees))


def may_check(node: Node) -> bool:
    """Tell whether a function's tree has anything by which a result may be judged, or a call that is given ``lm``."""
    return any(_checks(each) for each in ast.walk(node))


def talks(node: Node | None) -> bool:
    """Tell whether a function's tree has a call of ``lm.user``."""
    found = (each.func for each in ast.walk(node) if isinstance(each, ast.Call)) if node is not None else ()
    return any(isinstance(each, ast.Attribute) and ast.unparse(each) == "lm.user" for each in found)


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
    """Return the object that the expression of a call names; None where only running it would show that."""
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
