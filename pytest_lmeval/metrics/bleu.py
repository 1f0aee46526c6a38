"""BLEU of one example: as it is reported for translations, and of lowercased words, smoothed on all orders."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.metrics.parts.texts import best_over_targets, ngrams

_ORDERS = (1, 2, 3, 4)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# The steps of mteval-v13a, in its order: symbols stand alone; a full stop or comma does, except between digits; so
# does a dash after a digit. Other scripts are split at whitespace only.
_STEPS = (
    (re.compile(r"([!-&(-+/:-@\[-`{-~ ])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


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
    grams = ngrams(prediction, order)
    matches = (grams & ngrams(target, order)).total()
    return (matches + 1) / (grams.total() + 1)


@metric(threshold=0.5)
def bleu(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return the BLEU of one segment, of the best target; 0.0 where no word of the prediction is in it.

    The number that ``sacrebleu.sentence_bleu`` gives, over 100: tokens as in mteval-v13a, case kept; precisions of
    up to four words, of as many as the prediction has (effective order); an order without a match counts as
    ``1 / (2 ** k * n)`` for the k-th such order with ``n`` n-grams (exponential smoothing); brevity penalty. For a
    prediction of four tokens or more it is also the ``corpus_bleu`` of a corpus of this one segment.

    Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation"; Chen and Cherry (2014),
    "A systematic comparison of smoothing techniques for sentence-level BLEU", method 3.
    """
    words = _tokens(prediction)
    return max((_bleu(words, _tokens(target)) for target in targets), default=0.0)


def _bleu(prediction: Sequence[str], target: Sequence[str]) -> float:
    if Counter(prediction).keys().isdisjoint(target):
        return 0.0
    logs, missed = [], 0
    for order in _ORDERS[: len(prediction)]:
        grams = ngrams(prediction, order)
        matches = (grams & ngrams(target, order)).total()
        missed += matches == 0
        logs.append(math.log((matches or 0.5**missed) / grams.total()))
    brevity = min(0.0, 1 - len(target) / len(prediction))
    return min(1.0, math.exp(brevity + math.fsum(logs) / len(logs)))


def _tokens(text: str) -> list[str]:
    line = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        line = line.replace(entity, character)
    line = f" {line} "
    for pattern, spaced in _STEPS:
        line = pattern.sub(spaced, line)
    return line.split()
