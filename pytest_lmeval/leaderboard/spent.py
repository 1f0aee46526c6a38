"""What answers took: time, tokens and money, of a task or of a whole run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_lmeval.types import ExampleResult

LEAST = {"p50_ms": 5, "p95_ms": 20, "ttft_p95_ms": 20}
"""How many requests a percentile takes; of fewer there is none."""
FIELDS = (*LEAST, "tokens_per_example", "cost_per_example", "cost")
"""What a limit may be set on."""
_TOKENS = ("prompt_tokens", "completion_tokens")


def spent(results: Sequence[ExampleResult]) -> Mapping[str, float | int]:
    """Return those of FIELDS that are known, and how many ``requests`` were timed and ``cached`` answers were not.

    Times are milliseconds of one request each, without the waits between attempts. What an example used is taken of
    those without a cached answer; ``cost`` is that of all.
    """
    times = sorted(time for result in results for time in result.times)
    firsts = sorted(time for result in results for time in result.ttft_ms)
    asked = [result for result in results if result.usage and not result.cached]
    tokens = [sum(result.usage.get(name, 0) for name in _TOKENS) for result in asked if _tells_tokens(result)]
    costs = [result.usage["cost"] for result in asked if "cost" in result.usage]
    total = [result.usage["cost"] for result in results if "cost" in result.usage]
    found = {
        "requests": len(times) or None,
        "p50_ms": percentile(times, 0.5, LEAST["p50_ms"]),
        "p95_ms": percentile(times, 0.95, LEAST["p95_ms"]),
        "ttft_p95_ms": percentile(firsts, 0.95, LEAST["ttft_p95_ms"]),
        "tokens_per_example": sum(tokens) / len(tokens) if tokens else None,
        "cost_per_example": math.fsum(costs) / len(costs) if costs else None,
        "cost": math.fsum(total) if total else None,
        "cached": sum(result.cached for result in results) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def percentile(ordered: Sequence[float], share: float, least: int = 1) -> float | None:
    """Return the smallest of the ``ordered`` values that at least a ``share`` of them does not exceed.

    None of fewer values than ``least``.
    """
    if len(ordered) < max(1, least):
        return None
    # The product may lie a rounding error above the whole number that it is.
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)]


def _tells_tokens(result: ExampleResult) -> bool:
    return any(name in result.usage for name in _TOKENS)
