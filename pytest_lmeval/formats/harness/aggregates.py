"""From the values of all documents to one number and its standard error, metric by metric, as the harness has them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.harness.labels import binary_f1, matthews

Values = Sequence[Any]
ITERATIONS = 100_000
_CHUNK = 1000
_CORPUS = ("bleu", "chrf", "chrf++", "ter")
_CORPUS_ITERATIONS = 100


def mean(values: Values) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def nanmean(values: Values) -> float:
    """Return the mean of the values that are numbers; not a number without one."""
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def _median(values: Values) -> float:
    return sorted(values)[len(values) // 2]  # type: ignore[no-any-return]  # whatever is sorted


def _perplexity(values: Values) -> float:
    return math.exp(-mean(values))


def _ratio(values: Values) -> float:
    return sum(pair[0] for pair in values) / sum(pair[1] for pair in values)  # type: ignore[no-any-return]  # numbers


def _weighted_perplexity(values: Values) -> float:
    return math.exp(-_ratio(values))


def _bits_per_byte(values: Values) -> float:
    return -_ratio(values) / math.log(2)


def _brier(values: Values) -> float:
    """Return the mean squared distance of the probabilities from those of the right choice, in [0, 2]."""
    return mean([sum((p - (place == gold)) ** 2 for place, p in enumerate(shares)) for gold, shares in values])


def _f1(values: Values) -> float:
    return binary_f1([(gold, guess) for gold, guess in values])


def _mcc(values: Values) -> float:
    return matthews([(gold, guess) for gold, guess in values])


def _corpus(name: str) -> Callable[[Values], float]:
    def score(values: Values) -> float:
        try:
            sacrebleu = import_module("sacrebleu")
        except ImportError:
            raise ScoringError(f"the metric {name} needs sacrebleu: pip install sacrebleu") from None
        golds = [[gold] if isinstance(gold, str) else gold for gold, _ in values]
        guesses = [guess[0] if isinstance(guess, list) else guess for _, guess in values]
        kind = "chrf" if name == "chrf++" else name
        more = {"word_order": 2} if name == "chrf++" else {}
        of_corpus = getattr(sacrebleu, f"corpus_{kind}")
        return float(of_corpus(guesses, [*zip(*golds, strict=True)], **more).score)

    return score


AGGREGATIONS: Mapping[str, Callable[[Values], float]] = {
    "mean": mean,
    "nanmean": nanmean,
    "median": _median,
    "perplexity": _perplexity,
    "weighted_perplexity": _weighted_perplexity,
    "bits_per_byte": _bits_per_byte,
    "brier_score": _brier,
    "f1": _f1,
    "matthews_corrcoef": _mcc,
    "bypass": lambda values: 999.0,
    **{name: _corpus(name) for name in _CORPUS},
}
_BOOTSTRAPPED = frozenset({"median", "matthews_corrcoef", "f1", "perplexity", "nanmean", *_CORPUS})


def standard_error(name: str, values: Values, iterations: int = ITERATIONS) -> float | None:
    """Return the standard error of the aggregation ``name`` of ``values``; None where none is known.

    Of a mean it is that of the sample; of some others it is drawn ``iterations`` times from the values.
    """
    if len(values) < 2 or iterations <= 0:
        return None
    if name == "mean":
        return _deviation(values) / math.sqrt(len(values))
    if name not in _BOOTSTRAPPED:
        return None
    aggregation = AGGREGATIONS[name]
    drawn: list[float] = []
    iterations = min(iterations, _CORPUS_ITERATIONS) if name in _CORPUS else iterations
    size = min(_CHUNK, iterations)
    for seed in range(iterations // size):
        chance = random.Random(seed)
        drawn += [aggregation(chance.choices(values, k=len(values))) for _ in range(size)]
    return _deviation(drawn)


def _deviation(values: Values) -> float:
    center = mean(values)
    return math.sqrt(sum((value - center) ** 2 for value in values) / (len(values) - 1))
