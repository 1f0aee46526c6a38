"""Token F1: the words that prediction and target share, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.tokens import best_over_targets


@metric(threshold=0.5)
def f1(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    r"""Return the multiset F1 of the ``\w+`` tokens, lowercased, of the best target; 0.0 where a side has none.

    With ``o`` tokens in common, each as often as on the side that has fewer, precision is ``o / |prediction|``,
    recall ``o / |target|``, and their harmonic mean ``2 o / (|prediction| + |target|)``. As in the SQuAD evaluation
    (Rajpurkar et al., 2016), but articles and punctuated words are tokens like any other.
    """
    return best_over_targets(_f1, prediction, targets)


def _f1(prediction: Sequence[str], target: Sequence[str]) -> float:
    overlap = (Counter(prediction) & Counter(target)).total()
    return 2 * overlap / (len(prediction) + len(target))
