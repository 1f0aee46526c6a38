"""ROUGE-L: the words that prediction and target share, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.lcs import lcs_length
from pytest_lmeval.metrics.parts.tokens import best_over_targets

__all__ = ["rouge_l"]

# So many pairs of tokens are compared in about a second; two texts of a megabyte take seven, and 2 GB of memory.
_MOST_PAIRS = 1_000_000_000


@metric(threshold=0.5)
def rouge_l(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    r"""Return the ROUGE-L F1 of the ``\w+`` tokens, lowercased, of the best target; 0.0 where a side has none.

    With a longest common subsequence of ``l`` tokens, precision is ``l / |prediction|``, recall ``l / |target|``,
    and their harmonic mean ``2 l / (|prediction| + |target|)``: Lin (2004), "ROUGE: a package for automatic
    evaluation of summaries", with beta 1. No stemming; the whole text is one sequence. Raises ScoringError where two
    texts of many ten thousand words take longer than a worker's limit.
    """
    return best_over_targets(_rouge_l, prediction, targets)


def _rouge_l(prediction: Sequence[str], target: Sequence[str]) -> float:
    if len(prediction) * len(target) > _MOST_PAIRS:
        from pytest_lmeval.metrics.parts.worker import shared_worker

        shared = shared_worker().ask("rouge_l", prediction, target)
    else:
        shared = lcs_length(prediction, target)
    return float(2 * shared / (len(prediction) + len(target)))
