"""Define templates that make prompts, targets and ids from the columns of a row.

The templates use the sandboxed Jinja of declarative tasks. Each column is a variable; a column whose name is not a
valid variable is written ``row["First name"]``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused, nearest

if TYPE_CHECKING:
    from pytest_lmeval.templates.template import Template

_ROW = "row"
_FUNCTIONS = frozenset({"range"})


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """A compiled template; ``field`` is the key that identifies the template in messages."""

    field: str
    template: Template

    @classmethod
    def of(cls, source: str, field: str) -> RowTemplate:
        """Compile the template ``source``; raise RecordRefused if it is not valid."""
        from pytest_lmeval.templates.template import TemplateFault, compile_template

        try:
            return cls(field, compile_template(source))
        except TemplateFault as fault:
            raise RecordRefused("bad_value", field, str(fault)) from None

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """Only this template; a prompt of several parts may have several templates."""
        yield self

    def used(self, columns: Collection[str]) -> set[str]:
        """Return the names of all columns that the template uses; ``columns`` holds the known columns."""
        return _columns_of(self.template.names, columns)

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise RecordRefused for an unknown column, or if the template is only a column's name."""
        source = self.template.source.strip()
        name = source[1:-1] if source.startswith("{") and source.endswith("}") else source
        if name.strip() in columns:
            hint = f"write {'{{ ' + name.strip() + ' }}'!r} for its value"
            raise RecordRefused("bad_value", self.field, f"{source!r} is text, and the name of a column: {hint}")
        for name in sorted(self.used(columns)):
            if name not in columns and not self.template.tolerates_missing:
                instead = nearest(name, [*columns], "there is")
                raise RecordRefused("bad_value", self.field, f"there is no column {name!r}{instead}")

    def fill(self, row: Mapping[str, Any]) -> str:
        """Return the text for ``row``; raise RecordRefused if a column is missing, or used alone but empty."""
        return str(self._filled(row, self.template.render))

    def value(self, row: Mapping[str, Any]) -> Any:
        """Return the template's value for ``row``, or its text if it is not one expression; raise as :meth:`fill`."""
        return self._filled(row, self.template.value)

    def _filled(self, row: Mapping[str, Any], fill: Callable[[Mapping[str, Any]], Any]) -> Any:
        from pytest_lmeval.templates.template import TemplateFault

        if not self.template.tolerates_missing:
            self._check_cells(row)
        try:
            return fill({_ROW: row, **row})
        except TemplateFault as fault:
            raise RecordRefused("bad_value", self.field, str(fault)) from None

    def _check_cells(self, row: Mapping[str, Any]) -> None:
        for name in sorted(self.used(row)):
            if name not in row:
                instead = nearest(name, [*row], "there is")
                detail = f"the row has no {name!r}, which the template uses{instead}"
                raise RecordRefused("missing_required", self.field, detail)
        for name in sorted(_columns_of(self.template.alone, row)):
            if row[name] is None or (isinstance(row[name], str) and not row[name].strip()):
                instead = "{{ " + name + " or 'unknown' }}"
                detail = f"{name!r} is empty, and the template uses it; to allow that, write {instead}"
                raise RecordRefused("bad_value", self.field, detail)


@dataclass(frozen=True, slots=True)
class RowValue:
    """A value in which each string with an expression, at any depth, is a template."""

    value: Any

    @classmethod
    def of(cls, value: Any, field: str) -> RowValue:
        """Compile the templates in ``value``; raise RecordRefused for an invalid template."""
        return cls(_with_templates(value, field))

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """The templates in the value."""
        return _templates_in(self.value)

    def fill(self, row: Mapping[str, Any]) -> Any:
        """Return the value for ``row``; raise RecordRefused as :meth:`RowTemplate.fill` does."""
        return walked(self.value, lambda each: each.value(row) if isinstance(each, RowTemplate) else each)


@dataclass(frozen=True, slots=True)
class PartsTemplate:
    """A prompt of several parts: strings, and objects for media, whose values are also templates."""

    parts: Sequence[RowTemplate | RowValue]

    @classmethod
    def of(cls, given: Sequence[Any], field: str) -> PartsTemplate:
        """Compile the templates in the parts of a prompt; raise RecordRefused for an invalid template."""
        named = [(part, f"{field}[{number}]") for number, part in enumerate(given)]
        return cls([(RowTemplate if isinstance(part, str) else RowValue).of(part, name) for part, name in named])

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """The templates of all parts."""
        for part in self.parts:
            yield from part.templates

    def fill(self, row: Mapping[str, object]) -> list[Any]:
        """Return the parts for ``row``; raise RecordRefused as :meth:`RowTemplate.fill` does."""
        return [part.fill(row) for part in self.parts]


def walked(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``value`` with ``change`` applied to each element, at any depth, that is neither a list nor a mapping."""
    if isinstance(value, list):
        return [walked(each, change) for each in value]
    if isinstance(value, Mapping):
        return {key: walked(each, change) for key, each in value.items()}
    return change(value)


def _with_templates(value: Any, field: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_templates(each, f"{field}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_with_templates(each, f"{field}[{number}]") for number, each in enumerate(value)]
    is_template = isinstance(value, str) and ("{{" in value or "{%" in value)
    return RowTemplate.of(value, field) if is_template else value


def _templates_in(value: Any) -> Iterator[RowTemplate]:
    if isinstance(value, RowTemplate):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _templates_in(each)


def _columns_of(paths: Iterable[tuple[str, ...]], columns: Collection[str]) -> set[str]:
    names = (path[1:] if path[0] == _ROW and _ROW not in columns else path for path in paths)
    return {path[0] for path in names if path and path[0] not in _FUNCTIONS}
