"""ROUGE: the words (1), pairs of neighbouring words (2), and words in the same order (L) that both sides share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.texts import best_over_targets, lcs_length, ngrams

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
    ours, theirs = (ngrams(side, order) for side in (prediction, target))
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 0.0
