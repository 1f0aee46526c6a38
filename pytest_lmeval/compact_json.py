"""Encode JSON values as one line of ASCII, and compare JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


def compact_encoder(
    *, allow_nan: bool = False, sort_keys: bool = False, default: Callable[[Any], Any] | None = None
) -> Callable[[Any], str]:
    """Return a function like ``json.dumps`` that writes no whitespace and does not check for circular references."""
    options = {"allow_nan": allow_nan, "sort_keys": sort_keys, "check_circular": False}
    return json.JSONEncoder(separators=(",", ":"), default=default, **options).encode


encode = compact_encoder()
"""Encode a value for a page or a file; reject NaN."""


def json_equal(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal; the order of keys does not matter, and 1 equals 1.0 but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(json_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)


def json_key(value: Any) -> str:
    """Return the same text for two JSON values if and only if :func:`json_equal` is True for them."""
    return json.dumps(_without_fractions(value), sort_keys=True)


def _without_fractions(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_fractions(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_fractions(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
