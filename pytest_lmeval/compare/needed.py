"""Compute the repeats or examples needed to detect a drop of the overall score with 80 % power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_lmeval.stats.power import detectable_drop

DROPS = (0.05, 0.02, 0.01)
"""The drops of the overall score for which a calibration computes the needed repeats and examples."""
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Needed:
    """The responses or examples needed to detect a drop of the overall score four times in five.

    A suite needs either ``repeats`` of each existing example (None if no number suffices), or ``examples`` in total
    with today's repeats and shares of tasks (0 if no number suffices).
    """

    drop: float
    repeats: int | None
    examples: int


@dataclass(frozen=True, slots=True)
class Variances:
    """Sums of the squared parts of an overall change: ``spread`` if chance causes it, ``weight`` if it is the largest.

    ``spread`` is for runs with ``repeats`` responses to each of ``examples`` examples. In a drop, the scores of some
    examples fall by ``loss``.
    """

    spread: float
    weight: float
    examples: int
    repeats: int = 1
    loss: float = 1.0

    def needed(self, alpha: float, drops: Sequence[float] = DROPS) -> tuple[Needed, ...]:
        """Return, for each drop, the repeats or examples needed to detect it in a test at ``alpha``."""
        spread, weight, count = self.spread / self.loss**2, self.weight, self.examples
        return tuple(
            Needed(
                drop,
                # Doubling the responses halves the noise, but does not change a real drop.
                _least(partial(_shows, share, alpha, (spread * self.repeats, 0.0), (0.0, weight)), _MOST_REPEATS),
                _least(partial(_shows, share, alpha, (spread * count, weight * count), (0.0, 0.0))) or 0,
            )
            for drop, share in ((drop, drop / self.loss) for drop in drops)
        )

    def detectable(self, alpha: float) -> float | None:
        """Return the smallest drop that such runs detect four times in five; None if they detect no drop."""
        drop = detectable_drop(self.spread / self.loss**2, self.weight, alpha)
        return None if drop is None else drop * self.loss


def overall_level(alpha: float, tasks: int) -> float:
    """Return the level of the test of the overall change: half of alpha if there are several tasks, else alpha."""
    return alpha / 2 if tasks > 1 else alpha


def _shows(drop: float, alpha: float, shared: tuple[float, float], fixed: tuple[float, float], count: int) -> bool:
    """Return True if runs detect a drop; their spread and weight are ``shared`` over ``count``, plus ``fixed``."""
    spread, weight = (part / count + rest for part, rest in zip(shared, fixed, strict=True))
    detectable = detectable_drop(spread, weight, alpha)
    return detectable is not None and detectable <= drop


def _least(holds: Callable[[int], bool], most: int = 1 << 40) -> int | None:
    """Return the smallest number from 1 to ``most`` from which ``holds`` is true, or None."""
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
