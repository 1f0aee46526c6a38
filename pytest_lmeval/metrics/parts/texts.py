"""Split texts into words and n-grams, and measure the overlap of two texts.

Long computations run in the process of worker_child.py, which executes this file without the package.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

ARTICLE = re.compile(r"\b(?:a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TOKEN = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    r"""Return the ``\w+`` runs of the lowercased text: letters and digits in any script, and underscores."""
    return _TOKEN.findall(text.lower())


def ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the runs of ``order`` neighbouring tokens."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def closing_brace(text: str, first: int) -> int:
    """Return the index of the brace that closes the brace before ``first``, or the text's length if none does."""
    depth = 1
    for place in range(first, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def best_over_targets(
    score: Callable[[Sequence[str], Sequence[str]], float], prediction: str, targets: Sequence[str]
) -> float:
    """Return the highest ``score(prediction tokens, target tokens)`` over the targets.

    If either text (or both) has no tokens, the score is 0.0, as in rouge-score, sacrebleu and scikit-learn
    (``zero_division=0``).
    """
    words = tokenize(prediction)
    pairs = ((words, tokenize(target)) for target in targets)
    return max((score(*pair) for pair in pairs if all(pair)), default=0.0)


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the length of a longest common subsequence of two sequences.

    The bit-parallel algorithm is by Allison and Dix (1986), "A bit-string longest-common-subsequence algorithm", in the
    form of Hyyrö (2004), "Bit-parallel LCS-length computation revisited". It takes ``O(long * short / word)`` time and
    ``O(distinct * short)`` bits. One integer holds a whole row of the textbook table, with a 0 for each column in which
    the row grows by one. For each item of the longer sequence, an addition produces the next row.
    """
    short, long = sorted((left, right), key=len)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(short):
        places[item] = places.get(item, 0) | 1 << place
    columns = (1 << len(short)) - 1
    row = columns
    for item in long:
        if item in places:
            matches = row & places[item]
            row = row + matches | row - matches
    # Carries leave the row to the left; drop them once, at the end.
    return len(short) - (row & columns).bit_count()
