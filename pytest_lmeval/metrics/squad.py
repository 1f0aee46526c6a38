"""Answers as the SQuAD evaluation compares them: without articles, punctuation and case."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@metric()
def squad_em(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction has the words of any target in their order, else 0.0.

    Both sides are lowercased, lose ASCII punctuation and then the words "a", "an" and "the", and are split at
    whitespace: Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text". Two sides
    without a word are equal: where ``""`` is a target, it stands for "there is no answer".
    """
    words = _words(prediction)
    return float(any(words == _words(target) for target in targets))


@metric(threshold=0.5)
def squad_f1(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return the F1 over the multisets of words, normalised as above, of the best target.

    Where a side has no word the score is that of ``squad_em``: Rajpurkar et al. (2018), "Know what you don't know".
    """
    words = _words(prediction)
    return max((multiset_f1(words, _words(target)) for target in targets), default=0.0)


def multiset_f1(prediction: list[str], target: list[str]) -> float:
    """Return the F1 of two lists of words; where a side has none, whether both have none."""
    if not prediction or not target:
        return float(prediction == target)
    overlap = (Counter(prediction) & Counter(target)).total()
    return 2 * overlap / (len(prediction) + len(target))


def _words(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()
