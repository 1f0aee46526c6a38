"""Convert metric values to JSON and to scores in [0, 1], and aggregate them with standard errors.

Aggregations return the same numbers as the harness. F1 and Matthews' correlation equal scikit-learn's.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.harness.config import FunctionRef
from pytest_lmeval.types import Score

Values = Sequence[Any]
ITERATIONS = 100_000
_CHUNK = 1000
CORPUS = ("bleu", "chrf", "chrf++", "ter")
_CORPUS_ITERATIONS = 100
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_KEY = "number"


def encoded(value: Any) -> Any:
    """Return ``value`` as JSON; raise ScoringError for a type that JSON cannot represent."""
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_KEY: str(value)}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): encoded(each) for key, each in value.items()}
    if hasattr(value, "tolist"):  # a number or an array of numpy
        return encoded(value.tolist())
    raise ScoringError(f"a metric returned {type(value).__name__}: expected numbers, texts, lists or mappings")


def decoded(value: Any, of_list: type[tuple[Any, ...]] | type[list[Any]] = tuple) -> Any:
    """Return the value that :func:`encoded` turned into JSON; lists become tuples, except within mappings."""
    if isinstance(value, list):
        return of_list(decoded(each, of_list) for each in value)
    if isinstance(value, Mapping):
        if value.keys() == {_KEY} and value[_KEY] in _NOT_FINITE:
            return _NOT_FINITE[value[_KEY]]
        return {key: decoded(each, list) for key, each in value.items()}
    return value


def gate_value(value: Any, higher_is_better: bool) -> tuple[float, str]:
    """Return a number in [0, 1] that rises as the metric improves, and its formula ("" for the metric itself).

    For a sum of log-probabilities and a size, the formula is ``exp(sum / size)``. Raises ScoringError if ``value`` is
    neither a finite number nor a pair.
    """
    plain = encoded(value)
    if isinstance(plain, list) and len(plain) == 2:
        first, second = plain
        if isinstance(second, list) and isinstance(first, int):
            return 1 - _squared(first, second) / 2, "1 - squared distance / 2"
        if isinstance(first, float) and isinstance(second, int):
            return math.exp(min(0.0, first / second)) if second else 0.0, "exp(ll / size)"
        return float(first == second), "equal"
    if isinstance(plain, int | float):
        number = float(plain)
        if 0.0 <= number <= 1.0:
            return (number, "") if higher_is_better else (1 - number, "1 - value")
        if not higher_is_better and number < 0:  # a log-probability, which aggregates to a perplexity
            return math.exp(number), "exp(ll)"
        bounded = 0.5 + number / (2 * (1 + abs(number)))
        return (bounded if higher_is_better else 1 - bounded), "value / (1 + |value|), from 0 to 1"
    raise ScoringError(f"the deciding metric is {value!r:.80}, not a number: choose another with the key metric")


def score_of(value: Any, aggregation: str | FunctionRef, higher_is_better: bool) -> Score:
    """Return a document's score from the value of its deciding metric; the details contain the formula.

    If only the aggregation can use the value, the document has no score. None or NaN then excludes the document, and a
    mapping, text or list marks it as measured. Raises ScoringError for any other value that yields no score.
    """
    is_own = isinstance(aggregation, FunctionRef)
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    if is_missing and (is_own or aggregation == "nanmean"):
        return Score(0.0, excluded=f"the deciding metric is {value}")
    try:
        number, how = gate_value(value, higher_is_better)
    except ScoringError:
        if not is_own or isinstance(value, float):
            raise
        return Score(0.0, measured=True)
    return Score(number, {"gate_value": how} if how else {})


def mean(values: Values) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def _nanmean(values: Values) -> float:
    numbers = [value for value in values if not math.isnan(value)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def _ratio(values: Values) -> float:
    return sum(pair[0] for pair in values) / sum(pair[1] for pair in values)  # type: ignore[no-any-return]  # numbers


def _squared(gold: Any, shares: Sequence[float]) -> float:
    """Return the squared distance, in [0, 2], between the probabilities and the right choice."""
    return float(sum((share - (place == gold)) ** 2 for place, share in enumerate(shares)))


def f1_of(pairs: Values, label: Any) -> float:
    """Return the F1 of ``label``, in [0, 1]: 2 TP / (2 TP + FP + FN); 0 if no pair contains the label."""
    hits = sum(gold == label == predicted for gold, predicted in pairs)
    either = sum((gold == label) + (predicted == label) for gold, predicted in pairs)
    return 2 * hits / either if either else 0.0


def _binary_f1(pairs: Values) -> float:
    """Return the F1 of the label 1; raise ValueError for labels other than 0 and 1."""
    labels = {label for pair in pairs for label in pair}
    if len(labels) > 2 or (len(labels) == 2 and 1 not in labels):
        raise ValueError(f"f1 takes the labels 0 and 1, got {', '.join(sorted(map(str, labels)))}")
    return f1_of(pairs, 1)


def _matthews(pairs: Values) -> float:
    """Return the Matthews correlation of gold labels and predictions, in [-1, 1]; 0 if either is constant."""
    n = len(pairs)
    golds, predicted = Counter(gold for gold, _ in pairs), Counter(guess for _, guess in pairs)
    hits = sum(gold == guess for gold, guess in pairs)
    shared = sum(golds[label] * predicted[label] for label in golds)
    spread = (n * n - sum(k * k for k in golds.values())) * (n * n - sum(k * k for k in predicted.values()))
    return (hits * n - shared) / math.sqrt(spread) if spread else 0.0


def _of_corpus(name: str, values: Values) -> float:
    try:
        sacrebleu = import_module("sacrebleu")
    except ImportError:
        raise ScoringError(f"the metric {name} needs sacrebleu: pip install sacrebleu") from None
    golds = [[gold] if isinstance(gold, str) else gold for gold, _ in values]
    guesses = [guess[0] if isinstance(guess, list | tuple) else guess for _, guess in values]
    more = {"word_order": 2} if name == "chrf++" else {}
    score = getattr(sacrebleu, f"corpus_{name.removesuffix('++')}")
    return float(score(guesses, [*zip(*golds, strict=True)], **more).score)


AGGREGATIONS: Mapping[str, Callable[[Values], float]] = {
    "mean": mean,
    "nanmean": _nanmean,
    "median": lambda values: sorted(values)[len(values) // 2],
    "perplexity": lambda values: math.exp(-mean(values)),
    "weighted_perplexity": lambda values: math.exp(-_ratio(values)),
    "bits_per_byte": lambda values: -_ratio(values) / math.log(2),
    "brier_score": lambda values: mean([_squared(gold, shares) for gold, shares in values]),
    "f1": _binary_f1,
    "matthews_corrcoef": _matthews,
    "bypass": lambda values: 999.0,
    **{name: partial(_of_corpus, name) for name in CORPUS},
}
_BOOTSTRAPPED = frozenset({"median", "matthews_corrcoef", "f1", "perplexity", "nanmean", *CORPUS})


def standard_error(name: str, values: Values, iterations: int = ITERATIONS) -> float | None:
    """Return the standard error of the aggregation ``name`` of ``values``, or None if it is unknown.

    For a mean, divide the sample deviation by the square root of the number of values. Most other aggregations are
    bootstrapped with ``iterations`` draws (at most 100 for a corpus metric).
    """
    if len(values) < 2 or iterations <= 0:
        return None
    if name == "mean":
        return _deviation(values) / math.sqrt(len(values))
    if name not in _BOOTSTRAPPED:
        return None
    drawn: list[float] = []
    iterations = min(iterations, _CORPUS_ITERATIONS) if name in CORPUS else iterations
    size = min(_CHUNK, iterations)
    for seed in range(iterations // size):
        chance = random.Random(seed)
        drawn += [AGGREGATIONS[name](chance.choices(values, k=len(values))) for _ in range(size)]
    return _deviation(drawn)


def _deviation(values: Values) -> float:
    center = mean(values)
    return math.sqrt(sum((value - center) * (value - center) for value in values) / (len(values) - 1))
