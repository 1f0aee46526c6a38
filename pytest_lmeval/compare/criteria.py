"""Criteria of a comparison: for pairs of results, and for regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.frozen import dataclass

if TYPE_CHECKING:
    from pytest_lmeval.compare.pairing import Pair

PAIR_BY = ("content", "id")
"""Two results of one task and id form a pair if their content hashes, or their scoring hashes, are equal."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria for a regression.

    A drop must be significant at ``alpha``, and exceed ``tolerance``, a difference of scores in [0, 1]. ``alpha``, in
    (0, 1), is the chance that a whole run raises a false alarm. With ``strict`` or ``exact``, a single pair that passed
    before but not now is also a regression. ``exact`` is for adapters that always give the same answer to the same
    prompt; it ignores pairs with different prompts. ``pair_by`` is one of PAIR_BY. ``models`` is the number of models
    in the run that share ``alpha``.
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
        """Return True if this pair alone is a regression: the pair got worse, and the criteria are strict."""
        return pair.worse and (self.strict or (self.exact and not pair.differs_in_prompt))
