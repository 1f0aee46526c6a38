"""Compute the number of repeats or examples needed to detect a drop in the overall score with 80 % power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pytest_lmeval.stats.power import detectable_drop

DROPS = (0.05, 0.02, 0.01)
"""A calibration computes the repeats and examples needed for these drops in the overall score."""
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class Needed:
    """The number of repeats or examples that a suite needs to detect a drop in the overall score with 80 % power.

    The suite needs either ``repeats`` responses to each existing example, or a total of ``examples`` examples. The
    total assumes that repeats and the tasks' shares stay the same. If no number suffices, ``repeats`` is None, and
    ``examples`` is 0.
    """

    drop: float
    repeats: int | None
    examples: int


@dataclass(frozen=True, slots=True)
class Variances:
    """The sums of squares that determine the power of a suite.

    ``spread`` is the sum of the squared chance components of a change, in runs with ``repeats`` responses to each of
    ``examples`` examples. ``weight`` is the sum of the squared weights of the independent units. A drop is assumed to
    lower the scores of some examples by ``loss``.
    """

    spread: float
    weight: float
    examples: int
    repeats: int = 1
    loss: float = 1.0

    def needed(self, alpha: float, drops: Sequence[float] = DROPS) -> tuple[Needed, ...]:
        """Return the number of repeats or examples that a test at ``alpha`` needs to detect each of ``drops``."""
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
        """Return the smallest drop that a test at ``alpha`` detects with 80 % power, or None."""
        drop = detectable_drop(self.spread / self.loss**2, self.weight, alpha)
        return None if drop is None else drop * self.loss


def overall_level(alpha: float, tasks: int) -> float:
    """Return the overall test's level: alpha for a single task, or half of alpha for several."""
    return alpha / 2 if tasks > 1 else alpha


def _shows(drop: float, alpha: float, shared: tuple[float, float], fixed: tuple[float, float], count: int) -> bool:
    """Return True if a test detects ``drop`` with the spread and weight ``shared / count + fixed``."""
    spread, weight = (part / count + rest for part, rest in zip(shared, fixed, strict=True))
    detectable = detectable_drop(spread, weight, alpha)
    return detectable is not None and detectable <= drop


def _least(holds: Callable[[int], bool], most: int = 1 << 40) -> int | None:
    """Return the smallest number up to ``most`` for which ``holds`` is true, or None; ``holds`` must be monotonic."""
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
