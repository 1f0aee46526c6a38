"""Eval functions in a test file's text: found without importing it, and told apart by their syntax trees."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

_NOTHING: Mapping[str, ast.AST] = MappingProxyType({})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def may_hold_evals(data: bytes) -> bool:
    """Tell by the text of a Python file whether it may mark eval functions; those that only take ``lm`` do not."""
    return b"eval_task" in data


class FunctionHashes:
    """The hashes of a file's functions."""

    def __init__(self, data: bytes) -> None:
        try:
            tree: ast.Module | None = ast.parse(data)
        except (SyntaxError, ValueError):  # of something that rewrites files on import
            tree = None
        self._nodes = {} if tree is None else dict(functions_in(tree))

    def of(self, name: str, decisive: str, threshold: float, called: Mapping[str, ast.AST] = _NOTHING) -> str:
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

    def node(self, name: str) -> ast.AST | None:
        """Return the tree of a function by its qualified name; None where it is not in the file."""
        return self._nodes.get(name)


def functions_in(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Yield the functions and methods of a module with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from functions_in(node, prefix)


def _shown(node: ast.AST) -> list[str]:
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
