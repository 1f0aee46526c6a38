"""Sentence BLEU up to four words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.tokens import best_over_targets

__all__ = ["bleu_4"]

_ORDERS = (1, 2, 3, 4)


# Add-one smoothing gives a wrong one-word answer 0.84.
@metric(threshold=0.9)
def bleu_4(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    r"""Return the sentence BLEU of the ``\w+`` tokens, lowercased, of the best target; 0.0 where a side has none.

    ``brevity * (p1 p2 p3 p4) ** (1/4)``: Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine
    translation", for one segment. With ``c`` n-grams in the prediction, ``m`` of them in the target too, each at
    most as often as there, ``pn`` is ``(m + 1) / (c + 1)``: add-one smoothing after Lin and Och (2004), "ORANGE", but
    on all four orders. The brevity penalty is ``exp(1 - |target| / |prediction|)`` where the prediction is the
    shorter one, else 1.

    The whole text is one sequence however many sentences it has, and each target is a reference of its own. An
    order that the prediction is too short for counts as 1, so short texts score high: one wrong word has 0.84.
    """
    return best_over_targets(_bleu_4, prediction, targets)


def _bleu_4(prediction: Sequence[str], target: Sequence[str]) -> float:
    precisions = (_smoothed_precision(prediction, target, order) for order in _ORDERS)
    brevity = math.exp(min(0.0, 1 - len(target) / len(prediction)))
    return brevity * math.prod(precisions) ** (1 / len(_ORDERS))


def _smoothed_precision(prediction: Sequence[str], target: Sequence[str], order: int) -> float:
    grams = _ngrams(prediction, order)
    matches = (grams & _ngrams(target, order)).total()
    return (matches + 1) / (grams.total() + 1)


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))
