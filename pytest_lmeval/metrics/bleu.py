"""BLEU of one example: as reported for translations, and of lowercased words, smoothed on all orders."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.metrics.parts.texts import best_over_targets, ngrams

_ORDERS = (1, 2, 3, 4)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# The steps of mteval-v13a, in order: split off symbols, then full stops and commas except between digits, then a dash
# after a digit. Text in other scripts is split only at whitespace.
_STEPS = (
    (re.compile(r"([!-&(-+/:-@\[-`{-~ ])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


# Add-one smoothing gives a wrong one-word answer 0.84.
@metric(threshold=0.9)
def bleu_4(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    r"""Return the sentence BLEU of the lowercased ``\w+`` tokens for the best target; 0.0 if a side has no tokens.

    ``brevity * (p1 p2 p3 p4) ** (1/4)``: Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine
    translation", for one segment. If the prediction has ``c`` n-grams, and the target contains ``m`` of them, each at
    most as often as in the target, ``pn`` is ``(m + 1) / (c + 1)``: add-one smoothing after Lin and Och (2004),
    "ORANGE", but on all four orders. The brevity penalty is ``exp(1 - |target| / |prediction|)`` if the prediction is
    shorter, else 1.

    The whole text is one sequence, and each target is a separate reference. If a prediction is too short for an order,
    the precision of this order is 1, so short texts score high: a single wrong word scores 0.84.
    """
    return best_over_targets(_bleu_4, prediction, targets)


def _bleu_4(prediction: Sequence[str], target: Sequence[str]) -> float:
    counts = (_matches(prediction, target, order) for order in _ORDERS)
    brevity = math.exp(min(0.0, 1 - len(target) / len(prediction)))
    return brevity * math.prod((matches + 1) / (total + 1) for matches, total in counts) ** (1 / len(_ORDERS))


def _matches(prediction: Sequence[str], target: Sequence[str], order: int) -> tuple[int, int]:
    """Return the number of matching n-grams in the prediction, and the number of all."""
    grams = ngrams(prediction, order)
    return (grams & ngrams(target, order)).total(), grams.total()


@metric(threshold=0.5)
def bleu(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the BLEU of one segment for the best target; 0.0 if no target has a word of the prediction.

    Equals ``sacrebleu.sentence_bleu`` divided by 100: tokens as in mteval-v13a, with case; precisions of up to four
    words, or as many as the prediction has (effective order); the precision of the k-th order without a match is
    ``1 / (2 ** k * n)`` if it has ``n`` n-grams (exponential smoothing); brevity penalty. For a prediction of four
    tokens or more, it also equals the ``corpus_bleu`` of a corpus that consists of this segment.

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
        matches, total = _matches(prediction, target, order)
        missed += matches == 0
        logs.append(math.log((matches or 0.5**missed) / total))
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
