"""The words that the overlap metrics count."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    r"""Return the ``\w+`` runs of the lowercased text: letters, digits and underscores of any script."""
    return _TOKEN.findall(text.lower())


def best_over_targets(
    score: Callable[[Sequence[str], Sequence[str]], float], prediction: str, targets: Sequence[str]
) -> float:
    """Return the highest ``score(prediction tokens, target tokens)`` over the targets.

    A side without tokens scores 0.0, also against another one: nothing overlaps. rouge-score, sacrebleu and
    scikit-learn (``zero_division=0``) say the same.
    """
    words = tokenize(prediction)
    pairs = ((words, tokenize(target)) for target in targets)
    return max((score(*pair) for pair in pairs if all(pair)), default=0.0)
