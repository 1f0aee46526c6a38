"""Read a row's question, target and choices, as the task's keys specify.

Templates work as in declarative tasks, but also have the filter ``regex_replace``, and keep final line breaks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats.harness.config import Config, FunctionRef
from pytest_lmeval.formats.harness.functions import function_of, may_draw, seed_of, seeded, start_of
from pytest_lmeval.metrics.parts.patterns import compiled
from pytest_lmeval.templates.template import Dialect, TemplateFault, compile_template

Row = Mapping[str, Any]


class Documents:
    """Reads one task's rows.

    ``columns`` lists the evaluated split's columns. A key whose value is a column's name refers to that column. A
    string that is not a column's name is a template over all columns.
    """

    def __init__(self, config: Config, columns: Collection[str]) -> None:
        self._config = config
        self._columns = frozenset(columns)
        self._has_choices = config.has_choices
        self._functions: dict[FunctionRef, Callable[..., Any]] = {}

    def text(self, row: Row, spec: Any = None) -> Any:
        """Return the question as text, or the number of the right choice if the choices are the inputs."""
        return self._value(row, "doc_to_text", spec, self._number)

    def target(self, row: Row, spec: Any = None) -> Any:
        """Return the answer as text or as the number of a choice, or a list if several answers are right."""
        return self._value(row, "doc_to_target", spec, self._listed)

    def choices(self, row: Row, spec: Any = None) -> list[str]:
        """Return the options; raise RecordRefused if they are not a list of strings."""
        spec = self._config.get("doc_to_choice") if spec is None else spec
        if isinstance(spec, dict):
            found: Any = [*spec.values()]
        else:
            found = self._value(row, "doc_to_choice", spec, lambda text: _literal(text, None))
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise RecordRefused("bad_value", "doc_to_choice", f"expected a list of texts, got {found!r:.80}")
        return [*found]

    def images(self, row: Row) -> list[Any]:
        """Return a row's images, in the order of ``doc_to_image``."""
        spec = self._config.get("doc_to_image")
        names = spec if isinstance(spec, list) else [spec]
        found = [self._value(row, "doc_to_image", name, lambda text: _literal(text, text)) for name in names]
        if not isinstance(spec, list) and isinstance(found[0], list | tuple):
            return [*found[0]]
        return [image for image in found if image is not None]

    def field(self, row: Row, spec: str | None) -> str:
        """Return a column or a filled template, for ``description`` and ``gen_prefix``, or "" if ``spec`` is None."""
        return "" if spec is None else str(row[spec]) if spec in self._columns else template_of(spec)(row)

    def call(self, ref: FunctionRef, *given: Any, **named: Any) -> Any:
        """Return the result of one of the task's functions; raise ScoringError if the function raises.

        The function's random draws depend only on the document, not on earlier draws.
        """
        self.load(ref)
        if not may_draw(ref, self._config.roots):
            return self.run(ref, *given, **named)
        document = given[0] if given and isinstance(given[0], Mapping) else None
        seeds = () if document is None else (seed_of(document),) * 2
        with seeded(*seeds):
            # A function may shuffle a list in its document in place, but the next call needs the original.
            return self.run(ref, *(given if document is None else deepcopy(given)), **named)

    def load(self, *refs: Any) -> Any:
        """Import the functions among ``refs``; raise RecordRefused if an import fails.

        Return the state of ``random`` after the first import that drew from it, or None if no import did.
        """
        start = None
        for ref in refs:
            if isinstance(ref, FunctionRef):
                if ref not in self._functions:
                    self._functions[ref] = function_of(ref, self._config.roots)
                start = start or start_of(self._functions[ref])
        return start

    def run(self, ref: FunctionRef, *given: Any, **named: Any) -> Any:
        """Return the result of a loaded function without seeding; raise ScoringError if the function raises."""
        try:
            return self._functions[ref](*given, **named)
        except Exception as error:
            raise ScoringError(f"{ref}: {type(error).__name__}: {str(error)[:500]}") from error

    def _value(self, row: Row, key: str, spec: Any, read: Callable[[str], Any]) -> Any:
        """Return the value of ``spec``, by default of ``key``, for ``row``.

        ``read`` parses a filled template.
        """
        spec = self._config.get(key) if spec is None else spec
        if isinstance(spec, str):
            return row[spec] if spec in self._columns else read(template_of(spec)(row))
        if isinstance(spec, FunctionRef):
            return self.call(spec, dict(row))
        if spec is None:
            raise RecordRefused("missing_required", key, f"{self._config.name}: expected {key}")
        return spec

    def _number(self, text: str) -> Any:
        return _literal(text, text) if text.isdigit() and self._has_choices else text

    def _listed(self, text: str) -> Any:
        is_list = len(text) >= 2 and text[0] == "[" and text[-1] == "]"
        return _literal(text, text) if is_list else self._number(text)


def _literal(text: str, otherwise: Any) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return otherwise


@lru_cache(maxsize=4096)
def template_of(source: str) -> Callable[[Row], str]:
    """Return a function that fills the template ``source`` with a row; both functions raise RecordRefused."""
    if "{" not in source and "\r" not in source:  # plain text, such as many descriptions
        return lambda row: source
    try:
        template = compile_template(source, _DIALECT)
    except TemplateFault as fault:
        raise RecordRefused("bad_value", "template", str(fault)) from None

    def filled(row: Row) -> str:
        try:
            return template.render(row)
        except TemplateFault as fault:
            raise RecordRefused("bad_value", "template", str(fault)) from None

    return filled


def _regex_replace(text: str, pattern: str, repl: str, count: int = 0) -> str:
    return compiled(pattern).sub(repl, text, count)


# As in the harness, null becomes the word None.
_DIALECT = Dialect({"regex_replace": _regex_replace}, keeps_line_end=True, writes_null=True)
