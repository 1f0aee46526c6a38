"""Format Markdown tables of examples that failed or changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_lmeval.leaderboard.explained import reasons_of
from pytest_lmeval.report.cells import NO_PROMPTS, cells_of, changed_cells, changed_prompts, lacks_prompt
from pytest_lmeval.report.tables import Row, folded, head, listed
from pytest_lmeval.types import ExampleResult

_SHOWN = 25
_REASON = 300


def failed_table(failed: list[ExampleResult]) -> list[str]:
    """Return a collapsed table of the first 25 failed examples, with ``must_pass`` examples first."""
    failed.sort(key=lambda result: not result.must_pass)
    rows = [
        {
            "example": f"{result.task}: {result.id}",
            "status": result.status,
            **cells_of(result).by_name(),
            "judged": head(reasons_of(result), _REASON),
        }
        for result in failed[:_SHOWN]
    ]
    return _table(f"Failed: {len(failed)}", rows, len(failed))


def flip_table(title: str, flips: Sequence[Row], most: int = _SHOWN) -> list[str]:
    """Return a collapsed table of both runs' answers to the first ``most`` changed examples, given as JSON values."""
    if not flips:
        return []
    has_prompts = any("old_prompt" in flip for flip in flips)
    rows = [
        {
            "example": f"{flip['task']}: {flip['id']}",
            **changed_cells(flip).by_name(),
            "judged before": head(flip["old"].get("reason"), _REASON),
            "judged now": head(flip["new"].get("reason"), _REASON),
            **(dict(zip(("prompt before", "prompt now"), changed_prompts(flip), strict=True)) if has_prompts else {}),
        }
        for flip in flips[:most]
    ]
    lines = _table(f"{title}: {len(flips)}", rows, len(flips))
    return lines + listed([NO_PROMPTS] if any(map(lacks_prompt, flips[:most])) else [], 1)


def _table(title: str, rows: Sequence[Mapping[str, str]], total: int) -> list[str]:
    """Return a collapsed table without the columns that are empty in every row."""
    names = [name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)]
    return folded(title, names, [[row[name] for name in names] for row in rows], total - len(rows))
