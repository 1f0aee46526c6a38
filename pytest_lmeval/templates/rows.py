"""Templates over the columns of a row, which make prompts, targets and ids of data.

A template is the sandboxed Jinja of declarative tasks. A column is a variable; ``row["First name"]`` is one whose name
Jinja cannot spell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused, nearest

if TYPE_CHECKING:
    from pytest_lmeval.templates.template import Template

_ROW = "row"
_FUNCTIONS = frozenset({"range"})


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """A compiled template; ``field`` is what messages call the key that has it."""

    field: str
    template: Template

    @classmethod
    def of(cls, source: str, field: str) -> RowTemplate:
        """Return the template of ``source``; raise RecordRefused where it is not valid."""
        from pytest_lmeval.templates.template import TemplateFault, compile_template

        try:
            return cls(field, compile_template(source))
        except TemplateFault as fault:
            raise RecordRefused("bad_value", field, str(fault)) from None

    def used(self, columns: Collection[str]) -> set[str]:
        """Return the names of the columns that the template uses, among ``columns`` or not."""
        names = (path[1:] if path[0] == _ROW and _ROW not in columns else path for path in self.template.names)
        return {path[0] for path in names if path and path[0] not in _FUNCTIONS}

    def check_columns(self, columns: Collection[str]) -> None:
        """Raise RecordRefused for a column that no row has, and for a text that is only the name of one."""
        source = self.template.source.strip()
        if source in columns:
            detail = (
                f"{source!r} is a text, and the name of a column: write {'{{ ' + source + ' }}'!r} for what is in it"
            )
            raise RecordRefused("bad_value", self.field, detail)
        for name in sorted(self.used(columns)):
            if name not in columns and not self.template.tolerates_missing:
                raise RecordRefused("bad_value", self.field, f"there is no column {name!r}{_instead(name, columns)}")

    def fill(self, row: Mapping[str, Any]) -> str:
        """Return the text for ``row``; raise RecordRefused for a column that is missing or empty, and a blank text."""
        from pytest_lmeval.templates.template import TemplateFault

        if not self.template.tolerates_missing:
            self._check_cells(row)
        try:
            text = self.template.render({_ROW: row, **row})
        except TemplateFault as fault:
            raise RecordRefused("bad_value", self.field, str(fault)) from None
        return text

    def _check_cells(self, row: Mapping[str, Any]) -> None:
        for name in sorted(self.used(row)):
            if name not in row:
                detail = f"the row has no {name!r}, which the template uses{_instead(name, row)}"
                raise RecordRefused("missing_required", self.field, detail)
            if row[name] is None or (isinstance(row[name], str) and not row[name].strip()):
                raise RecordRefused("bad_value", self.field, f"{name!r} is empty, and the template uses it")


def _instead(name: str, columns: Collection[str]) -> str:
    return nearest(name, list(columns), "there is")
