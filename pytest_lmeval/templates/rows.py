"""Templates over the columns of a row: they make prompts, targets and ids from data.

Templates are written in the sandboxed Jinja of declarative tasks. Columns are variables; ``row["First name"]`` is a
column whose name is not a valid variable.
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
    """A compiled template; messages call it ``field``, the key of the template."""

    field: str
    template: Template

    @classmethod
    def of(cls, source: str, field: str) -> RowTemplate:
        """Return the template of ``source``; raise RecordRefused if it is not valid."""
        from pytest_lmeval.templates.template import TemplateFault, compile_template

        try:
            return cls(field, compile_template(source))
        except TemplateFault as fault:
            raise RecordRefused("bad_value", field, str(fault)) from None

    @property
    def templates(self) -> Iterator[RowTemplate]:
        """The template itself, as of a prompt that may have several."""
        yield self

    def used(self, columns: Collection[str]) -> set[str]:
        """Return the names of all columns that the template uses; ``columns`` are the known ones."""
        return _columns_of(self.template.names, columns)

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise RecordRefused for an unknown column, and for text that is only the name of a column."""
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
        """Return the text for ``row``; raise RecordRefused for a missing column, and for an empty column used alone."""
        return str(self._filled(row, self.template.render))

    def value(self, row: Mapping[str, Any]) -> Any:
        """Return the value for ``row`` if the template is one expression, else its text; raise as :meth:`fill`."""
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
    """A value in which every text with an expression, at any depth, is a template."""

    value: Any

    @classmethod
    def of(cls, value: Any, field: str) -> RowValue:
        """Return the value with its templates compiled; raise RecordRefused for an invalid one."""
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
    """A prompt of several parts: texts, and objects for media, whose values are templates, too."""

    parts: Sequence[RowTemplate | RowValue]

    @classmethod
    def of(cls, given: Sequence[Any], field: str) -> PartsTemplate:
        """Return the prompt with its templates compiled; raise RecordRefused for an invalid one."""
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
    """Return ``value`` with ``change`` applied to each element that is neither a list nor a mapping, at any depth."""
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
