"""ROUGE-1 and ROUGE-2: the words, and the pairs of neighbouring words, that prediction and target share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.tokens import best_over_targets

__all__ = ["rouge_1", "rouge_2"]


@metric(threshold=0.5)
def rouge_1(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    r"""Return the ROUGE-1 F1 of the ``\w+`` tokens, lowercased, of the best target; 0.0 where a side has none.

    Lin (2004), "ROUGE: a package for automatic evaluation of summaries", with beta 1, no stemming: the
    same number as ``f1``, under the name that summaries are reported by.
    """
    return best_over_targets(lambda *sides: _rouge_n(*sides, order=1), prediction, targets)


@metric(threshold=0.5)
def rouge_2(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return the ROUGE-2 F1, over pairs of neighbouring tokens, of the best target; 0.0 where a side has no pair."""
    return best_over_targets(lambda *sides: _rouge_n(*sides, order=2), prediction, targets)


def _rouge_n(prediction: Sequence[str], target: Sequence[str], *, order: int) -> float:
    ours, theirs = (_ngrams(side, order) for side in (prediction, target))
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 0.0


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))
