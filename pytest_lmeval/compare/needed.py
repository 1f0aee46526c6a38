"""The repeats, or examples, needed to detect a drop of the overall score with 80 % power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_lmeval.stats.power import detectable_drop

DROPS = (0.05, 0.02, 0.01)
"""The drops of the overall score for which a calibration computes the needs."""
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Needed:
    """The needs for showing a drop of the overall score four times in five.

    Either ``repeats`` of each existing example; None if no number is enough. Or so many ``examples``, with the same
    repeats and shares of the tasks; 0 if no number is enough.
    """

    drop: float
    repeats: int | None
    examples: int


@dataclass(frozen=True, slots=True)
class Variances:
    """Sums of the squared parts of an overall change: ``spread`` by chance, ``weight`` at most.

    ``spread`` is that of runs that ask each of ``examples`` examples ``repeats`` times.
    """

    spread: float
    weight: float
    examples: int
    repeats: int = 1

    def needed(self, alpha: float, drops: Sequence[float] = DROPS) -> tuple[Needed, ...]:
        """Return the needs for each of the drops if the overall change is tested at ``alpha``."""
        spread, weight, count = self.spread, self.weight, self.examples
        return tuple(
            Needed(
                drop,
                # Twice the responses halve the noise, and do not change a real drop.
                _least(partial(_shows, drop, alpha, (spread * self.repeats, 0.0), (0.0, weight)), _MOST_REPEATS),
                _least(partial(_shows, drop, alpha, (spread * count, weight * count), (0.0, 0.0))) or 0,
            )
            for drop in drops
        )

    def detectable(self, alpha: float) -> float | None:
        """Return the smallest drop that such runs show four times in five; None for none."""
        return detectable_drop(self.spread, self.weight, alpha)


def overall_level(alpha: float, tasks: int) -> float:
    """Return the level of the overall change: half of alpha if several tasks share it, else all of it."""
    return alpha / 2 if tasks > 1 else alpha


def _shows(drop: float, alpha: float, shared: tuple[float, float], fixed: tuple[float, float], count: int) -> bool:
    """Return True if a drop is shown if ``count`` divides the ``shared`` spread and weight; ``fixed`` are added."""
    spread, weight = (part / count + rest for part, rest in zip(shared, fixed, strict=True))
    detectable = detectable_drop(spread, weight, alpha)
    return detectable is not None and detectable <= drop


def _least(holds: Callable[[int], bool], most: int = 1 << 40) -> int | None:
    """Return the least number from 1 to ``most`` at and above which ``holds`` is true, or None."""
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
