"""Compute accuracy, probability, calibration and perplexity from log-probabilities.

Log-probabilities are natural logarithms, and losses are their negative means per token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

BINS = 10


def lowest(losses: Sequence[float]) -> int:
    """Return the index of the lowest loss, or the first such index if several losses are equal."""
    return min(range(len(losses)), key=losses.__getitem__)


def accuracy_by(values: Sequence[float], right: int) -> float:
    """Return 1.0 if the highest value (the first, if several are equal) is at the index ``right``, else 0.0."""
    return float(lowest([-value for value in values]) == right)


def per_character(totals: Sequence[float], texts: Sequence[str]) -> list[float]:
    """Return each option's log-probability divided by its number of characters, or by 1 for an empty option."""
    return [total / max(1, len(text)) for total, text in zip(totals, texts, strict=True)]


def per_byte(totals: Sequence[float], texts: Sequence[str]) -> list[float]:
    """Return each option's log-probability divided by its number of UTF-8 bytes, or by 1 for an empty option."""
    sizes = [max(1, len(text.encode("utf-8", "surrogatepass"))) for text in texts]
    return [total / size for total, size in zip(totals, sizes, strict=True)]


def softmax(totals: Sequence[float]) -> list[float]:
    """Return the options' probabilities, normalized to sum to 1.

    >>> softmax([-1000.0, -1000.0])
    [0.5, 0.5]
    """
    highest = max(totals)
    weights = [math.exp(total - highest) for total in totals]
    return [weight / math.fsum(weights) for weight in weights]


def probability_mass(totals: Sequence[float], right: Sequence[int]) -> float:
    """Return the share of the total probability, in [0, 1], that the options at the indexes ``right`` have."""
    shares = softmax(totals)
    return min(1.0, math.fsum(shares[number] for number in set(right)))


def perplexity(total: float, tokens: int) -> float:
    """Return the perplexity of ``tokens`` >= 1 tokens whose log-probabilities sum to ``total``.

    Return infinity if the perplexity is too large for a float.
    """
    try:
        return math.exp(-total / tokens)
    except OverflowError:
        return math.inf


def bits_per_byte(total: float, size: int) -> float:
    """Return the bits per byte of a text of ``size`` >= 1 bytes whose log-probability is ``total``."""
    return -total / (size * math.log(2))


def expected_calibration_error(confidences: Sequence[float], hits: Sequence[bool], bins: int = BINS) -> float:
    """Return the mean distance, in [0, 1], between confidence and share of hits over ``bins`` equally wide bins.

    The mean weights bins by size, and a confidence on a border belongs to the lower bin (Naeini et al., AAAI 2015, and
    Guo et al., ICML 2017). At least one confidence is required.
    """
    gaps: dict[int, list[float]] = {}
    for confidence, hit in zip(confidences, hits, strict=True):
        gaps.setdefault(max(0, math.ceil(confidence * bins) - 1), []).append(hit - confidence)
    return math.fsum(abs(math.fsum(part)) for part in gaps.values()) / len(confidences)


def brier_score(confidences: Sequence[float], hits: Sequence[bool]) -> float:
    """Return the mean squared distance, in [0, 1], between confidences and hits, which are 1 or 0 (Brier, 1950)."""
    squares = [(confidence - hit) ** 2 for confidence, hit in zip(confidences, hits, strict=True)]
    return math.fsum(squares) / len(squares)
