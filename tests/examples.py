"""How many examples a property test draws: a share of its number in the default run, all of them with ``--all``."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples", "share_of"]

USUAL = 100


def examples(count: int) -> settings:
    """Return the settings of a property test that draws ``count`` examples where others draw a hundred."""
    return settings(max_examples=share_of(count))


def share_of(count: int) -> int:
    """Return how many of ``count`` random examples are drawn: all of them with ``--all``."""
    assert settings.default is not None
    return count * settings.default.max_examples // USUAL
