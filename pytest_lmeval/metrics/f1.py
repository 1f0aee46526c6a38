"""Compute the F1 of the words that a prediction and a target share, over all words or as in SQuAD."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.metrics.parts.texts import ARTICLE, NO_PUNCTUATION, best_over_targets


@metric(threshold=0.5)
def f1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    r"""Return the multiset F1 of the lowercased ``\w+`` tokens for the best target, or 0.0 if either text lacks tokens.

    If the texts share ``o`` tokens, including repetitions, precision is ``o / |prediction|`` and recall is ``o /
    |target|``. The harmonic mean of precision and recall is ``2 o / (|prediction| + |target|)``. The metric follows the
    SQuAD evaluation (Rajpurkar et al., 2016), but keeps articles and splits words at punctuation.
    """
    return best_over_targets(multiset_f1, prediction, targets)


@metric(binary=True)
def squad_em(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction has the same words in the same order as any target, else 0.0.

    The comparison ignores case, ASCII punctuation and the words "a", "an" and "the", as in SQuAD (Rajpurkar et al.,
    2016). Two texts without words are equal, so the target ``""`` means that there is no answer.
    """
    words = _words(prediction)
    return float(any(words == _words(target) for target in targets))


@metric(threshold=0.5)
def squad_f1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the multiset F1 of the words, normalized as in ``squad_em``, for the best target.

    If either text has no words, the score equals ``squad_em`` (Rajpurkar et al., 2018, "Know what you don't know").
    """
    words = _words(prediction)
    return max((multiset_f1(words, _words(target)) for target in targets), default=0.0)


def multiset_f1(prediction: Sequence[str], target: Sequence[str]) -> float:
    """Return the F1 of two lists of words; if either list is empty, return 1.0 if both are empty, else 0.0."""
    if not prediction or not target:
        return float(prediction == target)
    overlap = (Counter(prediction) & Counter(target)).total()
    return 2 * overlap / (len(prediction) + len(target))


def _words(text: str) -> list[str]:
    return ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()
