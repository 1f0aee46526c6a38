"""Limits on what answers took, such as ``arithmetic.p95_ms``, and whether a board keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_lmeval.compare.changes import OVERALL
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.leaderboard.aggregations import FIELDS, LEAST
from pytest_lmeval.leaderboard.rows import rows_called

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard

_UNKNOWN = {
    "ttft_p95_ms": f"fewer than {LEAST['ttft_p95_ms']} answers came as a stream (openai: --lm-adapter-arg=stream=true)",
    "tokens_per_example": "no answer that was asked for tells its tokens",
    "cost_per_example": "no answer that was asked for tells its cost",
    "cost": "no answer tells its cost",
}


def limit_parts(limit: str) -> tuple[str, str]:
    """Return the task, or ``overall``, and the field of a limit's name; raise UsageError where that is no field."""
    name, _, field = limit.rpartition(".")
    if not name:
        raise UsageError(f"limit {limit!r}: expected NAME.FIELD, a task or 'overall' and one of {', '.join(FIELDS)}")
    if field not in FIELDS:
        raise UnknownName(f"field of the limit {limit!r}:", field, FIELDS)
    return name, field


def limited_names(limits: Iterable[str]) -> list[str]:
    """Return the tasks that limits are about, ``overall`` among them."""
    return [limit_parts(limit)[0] for limit in limits]


def over_limits(board: Leaderboard, limits: Mapping[str, float]) -> list[str]:
    """Return a reason for every limit that the board does not keep, or of which that cannot be told."""
    if "shard" in board.facts.selection:
        # As with floors: the parts are judged once they are merged.
        return []
    reasons = []
    for limit, most in limits.items():
        name, field = limit_parts(limit)
        rows = rows_called(name, board.tasks)
        known = {OVERALL: board.spent} if name == OVERALL else {row.task: row.spent for row in rows}
        found = [(task, _over(spent, field, most)) for task, spent in known.items()]
        reasons += [f"{task}.{field}: {reason}" for task, reason in found if reason]
    return reasons


def _over(spent: Mapping[str, float | int], field: str, most: float) -> str:
    value = spent.get(field)
    what = "tokens" if field.startswith("tokens") else field.partition("_")[0]
    if (known := spent.get(f"{what}_known")) is not None:
        return f"{what} known of {known} of {spent['asked']} examples, and the limit is {most:g}"
    if value is not None:
        return f"{value:.6g} is over its limit {most:g}" if value > most else ""
    count, least = spent.get("requests", 0), LEAST.get(field, 0)
    if count < least:
        cached = f", {spent['cached']} answers out of the cache aside" if "cached" in spent else ""
        return f"too few: {count:g} request(s) were timed{cached}, and {least} are needed; the limit is {most:g}"
    return f"not known, and the limit is {most:g}: {_UNKNOWN[field]}"
