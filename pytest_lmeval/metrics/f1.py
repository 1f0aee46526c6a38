"""F1 of the words that prediction and target share, in any order: of all words, and as SQuAD counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.metrics.parts.texts import ARTICLE, NO_PUNCTUATION, best_over_targets


@metric(threshold=0.5)
def f1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    r"""Return the multiset F1 of the lowercased ``\w+`` tokens for the best target; 0.0 if a side has no tokens.

    With ``o`` tokens in common, each counted as often as on the side with fewer, precision is ``o / |prediction|``,
    recall ``o / |target|``, and their harmonic mean ``2 o / (|prediction| + |target|)``. This follows the SQuAD
    evaluation (Rajpurkar et al., 2016), but articles and punctuated words are tokens like any other.
    """
    return best_over_targets(multiset_f1, prediction, targets)


@metric(binary=True)
def squad_em(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction has the words of any target in their order, else 0.0.

    Both sides are lowercased, lose ASCII punctuation and then the words "a", "an" and "the", and are split at
    whitespace: Rajpurkar et al. (2016), "SQuAD: 100,000+ questions for machine comprehension of text". Two sides
    without a word are equal: the target ``""`` means "there is no answer".
    """
    words = _words(prediction)
    return float(any(words == _words(target) for target in targets))


@metric(threshold=0.5)
def squad_f1(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return the multiset F1 of the words, normalized as by ``squad_em``, for the best target.

    If a side has no word, the score equals ``squad_em``: Rajpurkar et al. (2018), "Know what you don't know".
    """
    words = _words(prediction)
    return max((multiset_f1(words, _words(target)) for target in targets), default=0.0)


def multiset_f1(prediction: Sequence[str], target: Sequence[str]) -> float:
    """Return the F1 of two lists of words; if one is empty, 1.0 if both are, else 0.0."""
    if not prediction or not target:
        return float(prediction == target)
    overlap = (Counter(prediction) & Counter(target)).total()
    return 2 * overlap / (len(prediction) + len(target))


def _words(text: str) -> list[str]:
    return ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()
