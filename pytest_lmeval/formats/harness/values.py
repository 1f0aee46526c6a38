"""Values of metrics as JSON and back, and in [0, 1] for thresholds and gates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.errors import ScoringError

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_KEY = "number"


def encoded(value: Any) -> Any:
    """Return ``value`` as JSON; raise ScoringError where a metric returned what JSON does not have."""
    if isinstance(value, bool | str | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {_KEY: str(value)}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): encoded(each) for key, each in value.items()}
    if hasattr(value, "tolist"):  # of numpy, a number or an array
        return encoded(value.tolist())
    raise ScoringError(f"a metric returned {type(value).__name__}: expected numbers, texts, lists or mappings")


def decoded(value: Any) -> Any:
    """Return what :func:`encoded` was given; lists are tuples."""
    if isinstance(value, list):
        return tuple(decoded(each) for each in value)
    if isinstance(value, Mapping):
        if value.keys() == {_KEY} and value[_KEY] in _NOT_FINITE:
            return _NOT_FINITE[value[_KEY]]
        return {key: decoded(each) for key, each in value.items()}
    return value


def gate_value(value: Any, higher_is_better: bool) -> tuple[float, str]:
    """Return a number in [0, 1] that rises where the metric gets better, and how it was made; "" for the metric's own.

    Of a sum of log-probabilities and a size it is ``exp(sum / size)``. Raise ScoringError for what is no number.
    """
    plain = encoded(value)
    if isinstance(plain, list) and len(plain) == 2:
        first, second = plain
        if isinstance(second, list) and isinstance(first, int):
            wrong = sum((share - (place == first)) ** 2 for place, share in enumerate(second))
            return 1 - wrong / 2, "1 - squared distance / 2"
        if isinstance(first, float) and isinstance(second, int):
            return math.exp(min(0.0, first / second)) if second else 0.0, "exp(ll / size)"
        return float(first == second), "equal"
    if isinstance(plain, int | float):
        number = float(plain)
        if 0.0 <= number <= 1.0:
            return (number, "") if higher_is_better else (1 - number, "1 - value")
        if not higher_is_better and number < 0:  # a log-probability that becomes a perplexity
            return math.exp(number), "exp(ll)"
        bounded = 0.5 + number / (2 * (1 + abs(number)))
        return (bounded if higher_is_better else 1 - bounded), "value / (1 + |value|), from 0 to 1"
    raise ScoringError(f"the metric that decides is {value!r:.80}, no number: name another one with the key metric")
