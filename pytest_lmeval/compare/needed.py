"""What it takes to detect a drop of the overall score with 80 % power: more repeats, or more examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_lmeval.stats.power import detectable_drop

DROPS = (0.05, 0.02, 0.01)
"""The drops of the overall score that a calibration reckons it for."""
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Needed:
    """What it takes to be shown a drop of the overall score four times in five.

    Either ``repeats`` of each of the examples there are, in all; None where no number of them is enough. Or so many
    ``examples``, asked as often as they were, and shared out over the tasks as they are; 0 where no number is enough.
    """

    drop: float
    repeats: int | None
    examples: int


@dataclass(frozen=True, slots=True)
class Variances:
    """The sums of the squared parts of an overall change that its units contribute by chance, and that they could.

    ``spread`` is that of runs that ask each of ``examples`` examples ``repeats`` times.
    """

    spread: float
    weight: float
    examples: int
    repeats: int = 1

    def needed(self, alpha: float, drops: Sequence[float] = DROPS) -> tuple[Needed, ...]:
        """Return what each of the drops takes where the overall change is tested at ``alpha``."""
        spread, weight, count = self.spread, self.weight, self.examples
        return tuple(
            Needed(
                drop,
                # Twice the responses halve what chance does, and leave as it is what a real drop looks like.
                _least(partial(_shows, drop, alpha, (spread * self.repeats, 0.0), (0.0, weight)), _MOST_REPEATS),
                _least(partial(_shows, drop, alpha, (spread * count, weight * count), (0.0, 0.0))) or 0,
            )
            for drop in drops
        )

    def detectable(self, alpha: float) -> float | None:
        """Return the smallest drop that such runs show four times in five; None where none is."""
        return detectable_drop(self.spread, self.weight, alpha)


def overall_level(alpha: float, tasks: int) -> float:
    """Return the level of the overall change: half of alpha, where there are tasks to share it with."""
    return alpha / 2 if tasks > 1 else alpha


def _shows(drop: float, alpha: float, shared: tuple[float, float], fixed: tuple[float, float], count: int) -> bool:
    """Tell whether a drop is shown where ``count`` shares out the first spread and weight, and adds the others."""
    spread, weight = (part / count + rest for part, rest in zip(shared, fixed, strict=True))
    detectable = detectable_drop(spread, weight, alpha)
    return detectable is not None and detectable <= drop


def _least(holds: Callable[[int], bool], most: int = 1 << 40) -> int | None:
    """Return the least number from 1 to ``most`` from which on ``holds`` is true, or None."""
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
