"""How many examples a property test draws: a share of its number in the default run, all of them with ``--all``."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples", "share_of"]

USUAL = 100
# In a hundred, of examples that cost little.
LEAST = 30


def examples(count: int) -> settings:
    """Return the settings of a property test that draws ``count`` examples where others draw a hundred."""
    assert settings.default is not None
    return settings(max_examples=max(1, count * settings.default.max_examples // USUAL))


def share_of(count: int) -> int:
    """Return how many of ``count`` random examples a test of another kind draws: all of them with ``--all``."""
    assert settings.default is not None
    return count * max(LEAST, settings.default.max_examples) // USUAL
