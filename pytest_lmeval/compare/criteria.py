"""What a comparison is made by: what pairs results, and when a drop is a regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.frozen import dataclass

if TYPE_CHECKING:
    from pytest_lmeval.compare.pairing import Pair

PAIR_BY = ("content", "id")
"""What two results of one task and id must share to be a pair: their content hash, or their scoring hash."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """When a drop is a regression.

    It has to be significant at ``alpha``, the chance in (0, 1) of a false alarm of a whole run, and larger than
    ``tolerance``, a difference of scores in [0, 1]. With ``strict``, and with ``exact`` (the adapter always answers
    the same thing in the same way), a pair that passed and now does not is a regression as well, alone and in any task.
    ``exact`` says nothing of pairs that were asked with different prompts. ``pair_by`` is one of PAIR_BY. ``models`` is
    how many models of the run share ``alpha``, this one among them.
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
        """Tell whether this one pair is a regression: it passed and now does not, and every such pair counts."""
        return pair.worse and (self.strict or (self.exact and not pair.differs_in_prompt))
