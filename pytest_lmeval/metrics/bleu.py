"""Compute the BLEU of one example, as usual for translations (``bleu``) or smoothed on all orders (``bleu_4``)."""

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
    r"""Return the sentence BLEU of lowercased ``\w+`` tokens for the best target, or 0.0 if either text lacks tokens.

    For one segment, the formula of Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine
    translation", is ``brevity * (p1 p2 p3 p4) ** (1/4)``. The precision ``pn`` is ``(m + 1) / (c + 1)`` if the target
    contains ``m`` of the prediction's ``c`` n-grams. An n-gram counts at most as often as the target contains it. The
    smoothing adds one, as in Lin and Och (2004), "ORANGE", but for all four orders. The brevity penalty is ``exp(1 -
    |target| / |prediction|)`` if the prediction is shorter than the target, else 1.

    The whole text is one sequence, and each target is a separate reference. If a prediction is too short for an order,
    its precision for that order is 1, so short texts score high. For example, a single wrong word scores 0.84.
    """
    return best_over_targets(_bleu_4, prediction, targets)


def _bleu_4(prediction: Sequence[str], target: Sequence[str]) -> float:
    counts = (_matches(prediction, target, order) for order in _ORDERS)
    brevity = math.exp(min(0.0, 1 - len(target) / len(prediction)))
    return brevity * math.prod((matches + 1) / (total + 1) for matches, total in counts) ** (1 / len(_ORDERS))


def _matches(prediction: Sequence[str], target: Sequence[str], order: int) -> tuple[int, int]:
    """Return the number of the prediction's n-grams that match the target, and the number of all its n-grams."""
    grams = ngrams(prediction, order)
    return (grams & ngrams(target, order)).total(), grams.total()


@metric(threshold=0.5)
def bleu(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the BLEU of one segment for the best target, or 0.0 if no target shares a word with the prediction.

    The score equals ``sacrebleu.sentence_bleu`` divided by 100. Tokens are as in mteval-v13a, and case matters. The
    score combines the precisions for n-grams of up to four words, or of fewer words if the prediction is shorter
    (effective order), and a brevity penalty. If the k-th order without a match has ``n`` n-grams, its precision is ``1
    / (2 ** k * n)`` (exponential smoothing). For a prediction of four tokens or more, the score also equals the
    ``corpus_bleu`` of a corpus with only this segment.

    The metric comes from Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation". The
    smoothing is method 3 of Chen and Cherry (2014), "A systematic comparison of smoothing techniques for sentence-level
    BLEU".
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
