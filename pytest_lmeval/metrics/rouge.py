"""Compute ROUGE, the F1 of shared words (1), shared pairs of neighbouring words (2) or shared words in order (L)."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.metrics.f1 import f1
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.metrics.parts.texts import best_over_targets, lcs_length, ngrams

# Comparing this many pairs of tokens takes about a second; two texts of a megabyte take seven seconds, and 2 GB of
# memory.
_MOST_PAIRS = 1_000_000_000


@metric(threshold=0.5)
def rouge_l(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    r"""Return the ROUGE-L F1 of the lowercased ``\w+`` tokens for the best target, or 0.0 if either text lacks tokens.

    If a longest common subsequence has ``l`` tokens, precision is ``l / |prediction|`` and recall is ``l / |target|``.
    The harmonic mean of precision and recall is ``2 l / (|prediction| + |target|)``, as in Lin (2004), "ROUGE: a
    package for automatic evaluation of summaries", with beta 1. The metric does not stem words, and treats the whole
    text as one sequence. Raises ScoringError if two texts of tens of thousands of words exceed a worker's time limit.
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
def rouge_1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    r"""Return the ROUGE-1 F1 of the lowercased ``\w+`` tokens for the best target, or 0.0 if either text lacks tokens.

    The definition is from Lin (2004), "ROUGE: a package for automatic evaluation of summaries", with beta 1 and without
    stemming. This metric equals ``f1``, but has the usual name for summaries.
    """
    return f1(prediction, targets, extras)


@metric(threshold=0.5)
def rouge_2(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the ROUGE-2 F1 of pairs of neighbouring tokens for the best target, or 0.0 if either text has no pair."""
    return best_over_targets(_rouge_2, prediction, targets)


def _rouge_2(prediction: Sequence[str], target: Sequence[str]) -> float:
    ours, theirs = ngrams(prediction, 2), ngrams(target, 2)
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 0.0
