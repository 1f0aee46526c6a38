"""Criteria that decide which results form a pair, and which drops are regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.frozen import dataclass

if TYPE_CHECKING:
    from pytest_lmeval.compare.pairing import Pair

PAIR_BY = ("content", "id")
"""The ways to pair results with the same task and id: by equal content hashes, or by equal scoring hashes (``id``)."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria for a regression.

    A regression is a drop that is significant at ``alpha`` and larger than ``tolerance``, which is a score difference
    from 0 to 1. ``alpha`` is the probability that a run without any change raises a false alarm. With ``strict``, a
    single example that passed before but does not pass now is also a regression. ``exact`` has the same effect, but
    ignores pairs with different prompts. It is for adapters that always give the same answer to the same prompt.
    ``pair_by`` is one of PAIR_BY. ``models`` is the number of models in the run, which share ``alpha``.
    """

    alpha: float = 0.05
    tolerance: float = 0.0
    strict: bool = False
    exact: bool = False
    pair_by: str = "content"
    models: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha is {self.alpha!r}: expected a number between 0 and 1")
        if self.models < 1:
            raise ValueError(f"models is {self.models!r}: expected a number from 1")
        if not 0.0 <= self.tolerance <= 1.0:
            raise ValueError(f"tolerance is {self.tolerance!r}: expected a number from 0 to 1")

    def is_enough(self, pair: Pair) -> bool:
        """Return True if this pair alone makes the change a regression."""
        return pair.worse and (self.strict or (self.exact and not pair.differs_in_prompt))
