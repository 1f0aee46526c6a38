"""Templates as these files write them: those of declarative tasks, with a filter more and their last line ends kept."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jinja2.exceptions import TemplateSyntaxError

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.declarative.templates.environment import BUDGET, make_environment
from pytest_lmeval.formats.declarative.templates.filters import MAX_CHARS, LimitReached, RenderBudget
from pytest_lmeval.formats.declarative.templates.rewrite import guard
from pytest_lmeval.frozen import dataclass


@dataclass(frozen=True, slots=True)
class HarnessTemplate:
    """One template; its variables are the columns of a row."""

    source: str
    compiled: Any

    def render(self, row: Any) -> str:
        """Return the template filled with ``row``; raise RecordRefused where the row does not fit it."""
        if self.compiled is None:
            return self.source
        try:
            budget = RenderBudget()
            text: str = "".join(self.compiled.root_render_func(self.compiled.new_context({**row, BUDGET: budget})))
            if len(text) > MAX_CHARS:
                raise LimitReached(f"more than {MAX_CHARS:,} characters")
        except Exception as error:
            shown = " ".join(self.source.split())[:80]
            raise RecordRefused("bad_value", "template", f"{shown!r}: {type(error).__name__}: {error}") from None
        return text


@lru_cache(maxsize=4096)
def template_of(source: str) -> HarnessTemplate:
    """Return the template of ``source``; raise RecordRefused where it is not valid."""
    if "{" not in source and "\r" not in source:  # as it is: many descriptions are
        return HarnessTemplate(source, None)
    environment = _environment()
    try:
        parsed = environment.parse(source)
        parsed.set_environment(environment)
        code = environment.compile(guard(parsed), name=None, filename="<template>")
    except TemplateSyntaxError as error:
        raise RecordRefused("bad_value", "template", f"line {error.lineno} of the template: {error.message}") from None
    return HarnessTemplate(source, environment.template_class.from_code(environment, code, environment.globals))


@lru_cache(maxsize=1)
def _environment() -> Any:
    environment = make_environment()
    environment.keep_trailing_newline = True
    environment.filters["regex_replace"] = _regex_replace
    return environment


def _regex_replace(text: str, pattern: str, repl: str, count: int = 0) -> str:
    return re.sub(pattern, repl, text, count=count)
