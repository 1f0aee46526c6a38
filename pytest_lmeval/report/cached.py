"""What every report says of the cache: what came out of it, how old that is, and what is not kept."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

_NO_FINGERPRINT = "it was made in Python and has no attribute fingerprint, a text that is another one for another model"


def cache_lines(cache: Mapping[str, Any], run_at: str) -> list[str]:
    """Return what came out of the cache of the run that began at ``run_at``, what it saved, and what to know of it."""
    lines = [_used(cache, run_at)]
    # Boards of version 0.1.1 have these.
    lines += [f"cached by name and options only: {name}" for name in cache.get("by_name_and_options_only", ())]
    lines += [f"not cached: {name}: {_NO_FINGERPRINT}" for name in cache.get("not_cached", ())]
    if "outdated" in cache:
        lines.append(
            f"cache: {cache['outdated']} answer(s) of version 0.1.1 are not used, as their keys do not tell all "
            "adapters apart; `lmeval cache prune` removes them"
        )
    return lines + ([f"cache: no more answers are kept: {cache['failure']}"] if "failure" in cache else [])


def _used(cache: Mapping[str, Any], run_at: str) -> str:
    saved = f"; cost saved: {cache['saved_cost']:.6g}" if cache["saved_cost"] else ""
    oldest = f"; the oldest is {_age(cache['oldest'], run_at)}" if "oldest" in cache else ""
    return f"cache: {cache['hits']} of {cache['hits'] + cache['misses']} answer(s) found{saved}{oldest}"


def _age(asked: Any, run_at: str) -> str:
    """Return how old an answer was in a run, and its day; times are as boards have them."""
    with suppress(TypeError, ValueError):
        days = max(0, (datetime.fromisoformat(run_at) - datetime.fromisoformat(str(asked))).days)
        return f"{days} day(s) old ({str(asked)[:10]})"
    return f"of {asked}"
