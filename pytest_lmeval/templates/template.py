"""Compile a template once, and render it for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jinja2 import Undefined, meta, nodes
from jinja2.environment import Template as JinjaTemplate
from jinja2.exceptions import TemplateSyntaxError, UndefinedError

from pytest_lmeval.templates.environment import TemplateEnvironment, make_environment
from pytest_lmeval.templates.filters import BUDGET, MAX_CHARS, MEMORY, LimitReached, MemoryBudget, RenderBudget, written
from pytest_lmeval.templates.rewrite import guard, references

_RESULT = "lmeval_result"


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A format's template options: more filters, and whether to keep a trailing newline and to write null as None."""

    filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    keeps_line_end: bool = False
    writes_null: bool = False


USUAL = Dialect()


class TemplateFault(Exception):
    """A template cannot be parsed, or cannot be rendered with a row."""


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template; ``names`` holds its variables, each with the constant attributes that follow it.

    ``alone`` holds the variables that the template writes unchanged. ``tolerates_missing`` is True if the template
    tests whether a variable is defined, or has a default for a missing variable.
    """

    source: str
    names: frozenset[tuple[str, ...]]
    alone: frozenset[tuple[str, ...]]
    tolerates_missing: bool
    _dialect: Dialect
    _text: JinjaTemplate
    _value: JinjaTemplate | None

    def render(self, variables: Mapping[str, Any]) -> str:
        """Render the template with ``variables``; raise TemplateFault if that fails.

        Renderings share a memory budget if their variables have the same `MemoryBudget` under ``MEMORY``.
        """
        budget = self._budget(variables)
        try:
            context = self._text.new_context({**variables, BUDGET: budget})
            chunks: list[str] = []
            size = 0
            for chunk in self._text.root_render_func(context):
                size += len(chunk)
                if size > MAX_CHARS:
                    raise LimitReached(f"more than {MAX_CHARS:,} characters")
                chunks.append(chunk)
            text: str = budget.made("".join(chunks))
            return text
        except Exception as error:
            raise TemplateFault(self._shown(error)) from None

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Return the value of a template that is one expression, or else its text; raise TemplateFault on failure."""
        if self._value is None:
            return self.render(variables)
        try:
            context = self._value.new_context({**variables, BUDGET: self._budget(variables)})
            for _ in self._value.root_render_func(context):
                pass
            value = context.vars[_RESULT]
            if isinstance(value, Undefined):
                str(value)  # raises its error
            return value
        except Exception as error:
            raise TemplateFault(self._shown(error)) from None

    def _budget(self, variables: Mapping[str, Any]) -> RenderBudget:
        """Return the budget of a rendering, with the memory that the example's other templates have not used."""
        memory = variables.get(MEMORY)
        shared = memory if isinstance(memory, MemoryBudget) else MemoryBudget()
        return RenderBudget(shared, writes_null=self._dialect.writes_null)

    def _shown(self, error: Exception) -> str:
        kind = "" if isinstance(error, UndefinedError | LimitReached) else f"{type(error).__name__}: "
        shown = " ".join(self.source.split())
        return f"template {shown[:80]!r}: {kind}{str(error)[:500]}"


@lru_cache(maxsize=4096)
def compile_template(source: str, dialect: Dialect = USUAL) -> Template:
    """Compile ``source``; raise a TemplateFault that describes the error if it is not a valid template."""
    environment = make_environment()
    environment.keep_trailing_newline = dialect.keeps_line_end
    environment.filters.update(dialect.filters)
    if not dialect.writes_null:
        environment.finalize = written
    try:
        parsed = environment.parse(source)
        unset = meta.find_undeclared_variables(parsed)
        names = frozenset(name for name in references(parsed) if name[0] in unset)
        alone = names & frozenset(_alone(parsed))
        tolerant, value = _tolerates_missing(parsed), _expression(environment, source)
        return Template(source, names, alone, tolerant, dialect, _compiled(environment, parsed), value)
    except TemplateSyntaxError as error:
        raise TemplateFault(f"line {error.lineno} of the template: {error.message}") from None
    except (MemoryError, RecursionError, SyntaxError, ValueError) as error:
        # Python's own compiler also has limits.
        raise TemplateFault(f"not a valid template: {error}") from None


def _alone(parsed: nodes.Template) -> Iterator[tuple[str, ...]]:
    for output in parsed.find_all(nodes.Output):
        for part in output.nodes:
            if isinstance(part, nodes.Name | nodes.Getattr | nodes.Getitem):
                yield from references(nodes.Template([nodes.Output([part])]))


def _tolerates_missing(parsed: nodes.Template) -> bool:
    asked = any(test.name in ("defined", "undefined") for test in parsed.find_all(nodes.Test))
    return asked or any(each.name in ("d", "default") for each in parsed.find_all(nodes.Filter))


def _expression(environment: TemplateEnvironment, source: str) -> JinjaTemplate | None:
    body = environment.parse(source).body
    parts = [part for output in body if isinstance(output, nodes.Output) for part in output.nodes]
    full = [part for part in parts if not (isinstance(part, nodes.TemplateData) and not part.data.strip())]
    if len(full) != 1 or isinstance(full[0], nodes.TemplateData) or not all(isinstance(n, nodes.Output) for n in body):
        return None
    result = nodes.Assign(nodes.Name(_RESULT, "store", lineno=1), full[0], lineno=1)
    return _compiled(environment, nodes.Template([result], lineno=1))


def _compiled(environment: TemplateEnvironment, parsed: nodes.Template) -> JinjaTemplate:
    parsed.set_environment(environment)
    code = environment.compile(guard(parsed), name=None, filename="<template>")
    return JinjaTemplate.from_code(environment, code, environment.globals)
