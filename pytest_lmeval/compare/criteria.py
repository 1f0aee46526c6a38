"""Criteria of a comparison: how results pair, and when a drop is a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.frozen import dataclass

if TYPE_CHECKING:
    from pytest_lmeval.compare.pairing import Pair

PAIR_BY = ("content", "id")
"""The hash that two results of one task and id must share to be a pair: of their content, or of their scoring."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria of a regression.

    A drop has to be significant at ``alpha``, the chance in (0, 1) of a false alarm of a whole run, and larger than
    ``tolerance``, a difference of scores in [0, 1]. With ``strict``, or ``exact`` (the adapter always gives the same
    answer to the same prompt), any single pair that passed and now does not is also a regression. ``exact`` does not
    apply to pairs with different prompts. ``pair_by`` is one of PAIR_BY. ``models`` is how many models of the run, this
    one among them, share ``alpha``.
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
        """Return True if this pair alone is a regression: it passed and now does not, and every such pair counts."""
        return pair.worse and (self.strict or (self.exact and not pair.differs_in_prompt))
