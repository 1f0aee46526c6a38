"""Rewrite a template's syntax tree: refuse all nodes except known harmless ones, and guard nodes that can grow."""

from __future__ import annotations

from collections.abc import Iterator

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.visitor import NodeTransformer

_ALLOWED = """
    Template Output TemplateData For If Assign With Name Const Tuple List Dict Pair Keyword CondExpr Filter Test Call
    Getitem Getattr Slice Concat Compare Operand BinExpr UnaryExpr
"""
_ALLOWED_NODES = tuple(getattr(nodes, name) for name in _ALLOWED.split())
# Python allows only 20 nested loops in a function, and 100 levels of indentation.
_DEEPEST_LOOPS = 16
_DEEPEST_BLOCKS = 40
# Filters and methods that return an existing value, not a new one.
_PASSING = frozenset({"cycle", "d", "default", "first", "get", "items", "keys", "last", "max", "min", "values"})


def guard(template: nodes.Template) -> nodes.Template:
    """Return the template with guards on its loops and values; raise TemplateSyntaxError for a refused node."""
    _check_depth(template)
    for node in template.find_all(nodes.Node):
        if not isinstance(node, _ALLOWED_NODES):
            raise TemplateSyntaxError(f"{type(node).__name__.lower()} is not available in templates", node.lineno)
        if isinstance(node, nodes.For) and node.recursive:
            raise TemplateSyntaxError("a recursive loop is not available in templates", node.lineno)
    guarded = _Guard().visit(template)
    assert isinstance(guarded, nodes.Template)
    return guarded


def _check_depth(template: nodes.Template) -> None:
    waiting: list[tuple[nodes.Node, int, int]] = [(template, 0, 0)]
    while waiting:
        node, loops, blocks = waiting.pop()
        loops += isinstance(node, nodes.For)
        blocks += isinstance(node, nodes.For | nodes.If | nodes.With)
        if loops > _DEEPEST_LOOPS:
            raise TemplateSyntaxError(f"more than {_DEEPEST_LOOPS} loops within one another", node.lineno)
        if blocks > _DEEPEST_BLOCKS:
            raise TemplateSyntaxError(f"more than {_DEEPEST_BLOCKS} blocks within one another", node.lineno)
        waiting.extend((inner, loops, blocks) for inner in node.iter_child_nodes())


def references(template: nodes.Template) -> Iterator[tuple[str, ...]]:
    """Yield each name that the template looks up, with the constant attributes that follow it."""
    covered: set[int] = set()
    # Outer nodes come before inner nodes.
    for node in template.find_all((nodes.Getattr, nodes.Getitem, nodes.Name)):
        if id(node) in covered:
            continue
        path: list[str] = []
        inner: nodes.Node = node
        while isinstance(inner, nodes.Getattr | nodes.Getitem):
            covered.add(id(inner))
            path = [*_attribute(inner), *path] if _attribute(inner) else []
            inner = inner.node
        if isinstance(inner, nodes.Name) and inner.ctx == "load":
            covered.add(id(inner))
            yield (inner.name, *path)


def _attribute(node: nodes.Getattr | nodes.Getitem) -> list[str]:
    if isinstance(node, nodes.Getattr):
        return [node.attr]
    if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        return [node.arg.value]
    return []


class _Guard(NodeTransformer):
    """Adds guard filters, which no template can name, to nodes that can repeat or grow."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        self.generic_visit(node)
        assert isinstance(node.iter, nodes.Expr)
        node.iter = _filtered(node.iter, " iterate")
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        self.generic_visit(node)
        node.nodes = [
            each if isinstance(each, nodes.TemplateData) else _filtered(each, " shown") for each in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        self.generic_visit(node)
        first, *others = node.nodes
        return _filtered(first, " concatenate", others)

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        return self._within(node, " made")

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        return self._within(node, " made")

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        return self._within(node, " made") if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        if isinstance(node.arg, nodes.Slice):
            return self._within(node, " made")
        return self.generic_visit(node)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        return self._within(node, " weigh" if node.name in _PASSING else " made throughout")

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802  # jinja2 finds it by this name
        passing = isinstance(node.node, nodes.Getattr) and node.node.attr in _PASSING
        return self._within(node, " weigh" if passing else " made throughout")

    def _within(self, node: nodes.Expr, name: str) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, name)


def _filtered(node: nodes.Expr, name: str, arguments: list[nodes.Expr] | None = None) -> nodes.Filter:
    return nodes.Filter(node, name, arguments or [], [], None, None, lineno=node.lineno)
