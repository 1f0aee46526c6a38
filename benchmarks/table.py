"""The figures side by side, as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Row", "render_table"]

_HEADER = ("what", "unit", "plugin", "against", "reference", "ratio", "difference", "aim", "met")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the plugin beside the same figure of something else.

    ``aim`` is the highest value of ``aimed`` that is good: of the figure itself, of its ratio to the reference, or of
    its difference from it.
    """

    what: str
    unit: str
    plugin: float
    against: str
    reference: float
    aim: float | None = None
    aimed: Literal["figure", "ratio", "difference"] = "figure"

    @property
    def ratio(self) -> float:
        """The plugin's figure over the reference."""
        return self.plugin / self.reference

    @property
    def difference(self) -> float:
        """The plugin's figure less the reference."""
        return self.plugin - self.reference

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without an aim."""
        value = {"figure": self.plugin, "ratio": self.ratio, "difference": self.difference}[self.aimed]
        return None if self.aim is None else value <= self.aim

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        aim = "" if self.aim is None else f"{self.aimed} <= {_digits(self.aim)}"
        met = {None: "", True: "yes", False: "no"}[self.met]
        figures = (_digits(self.plugin), self.against, _digits(self.reference), f"{self.ratio:.3f}")
        return (self.what, self.unit, *figures, _digits(self.difference), aim, met)


def render_table(rows: Iterable[Row]) -> str:
    """Return ``rows`` as a Markdown table whose columns are aligned."""
    table = [_HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADER))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in table
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
