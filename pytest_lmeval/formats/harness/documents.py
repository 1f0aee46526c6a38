"""What a task makes of one row: its text, target and choices, and the texts around them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.document import FunctionRef
from pytest_lmeval.formats.harness.functions import called, function_of
from pytest_lmeval.formats.harness.templates import template_of

Row = Mapping[str, Any]


class Documents:
    """Reads the rows of one task; ``columns`` are those of the split that is evaluated.

    A text that is the name of a column is that column, any other a template over all columns.
    """

    def __init__(self, config: Config, columns: Collection[str]) -> None:
        self._config = config
        self._columns = frozenset(columns)
        self._has_choices = config.has_choices()
        self._functions: dict[FunctionRef, Callable[..., Any]] = {}

    def text(self, row: Row, spec: Any = None) -> Any:
        """Return the question: text, or the number of a choice where the choices are the inputs."""
        spec = self._config.get("doc_to_text") if spec is None else spec
        if not isinstance(spec, str) or spec in self._columns:
            return self._value(row, spec, "doc_to_text")
        return self._number(template_of(spec).render(row))

    def target(self, row: Row, spec: Any = None) -> Any:
        """Return the answer: text, the number of a choice, or a list of either where several are right."""
        spec = self._config.get("doc_to_target") if spec is None else spec
        if not isinstance(spec, str) or spec in self._columns:
            return self._value(row, spec, "doc_to_target")
        text = template_of(spec).render(row)
        if len(text) >= 2 and text[0] == "[" and text[-1] == "]":
            return _literal(text, text)
        return self._number(text)

    def choices(self, row: Row, spec: Any = None) -> list[str]:
        """Return the options; raise RecordRefused where there is no list of texts."""
        spec = self._config.get("doc_to_choice") if spec is None else spec
        if isinstance(spec, dict):
            found: Any = [*spec.values()]
        elif isinstance(spec, str) and spec not in self._columns:
            text = template_of(spec).render(row)
            found = _literal(text, None)
        else:
            found = self._value(row, spec, "doc_to_choice")
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise RecordRefused("bad_value", "doc_to_choice", f"expected a list of texts, got {found!r:.80}")
        return [*found]

    def field(self, row: Row, spec: str | None) -> str | None:
        """Return a column, or a template filled: ``description`` and ``gen_prefix``; None for None."""
        if spec is None:
            return None
        return str(row[spec]) if spec in self._columns else template_of(spec).render(row)

    def call(self, ref: FunctionRef, *given: Any, **named: Any) -> Any:
        """Return what one of the task's functions does; raise ScoringError where it raises."""
        function = self._functions.get(ref) or function_of(ref, self._config.root)
        self._functions[ref] = function
        return called(f"{ref.module}.{ref.name}", function, *given, **named)

    def _value(self, row: Row, spec: Any, key: str) -> Any:
        if isinstance(spec, str):
            return row[spec]
        if isinstance(spec, FunctionRef):
            return self.call(spec, dict(row))
        if spec is None:
            raise RecordRefused("missing_required", key, f"{self._config.name}: expected {key}")
        return spec

    def _number(self, text: str) -> Any:
        return _literal(text, text) if text.isdigit() and self._has_choices else text


def _literal(text: str, otherwise: Any) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return otherwise
