"""What is the same for every file of a run: strict JSON, and a schema that this version reads."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pytest_lmeval.errors import UsageError


def parse_json(text: str) -> Any:
    """Return the value of strict JSON; raise ValueError for anything else, NaN and hostile nesting included."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the object that is all of a line without blanks around it; None unless that is strict JSON."""
    try:
        text = line.decode("utf-8")
        # ``decode`` would search the text for blanks twice more.
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def check_schema(path: object, schema: object, reads: str) -> None:
    """Raise UsageError unless the file at ``path``, which states ``schema``, is of ``reads`` or an earlier version."""
    kind, _, version = reads.rpartition("/")
    stated, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    earlier = [str(each) for each in range(1, int(version) + 1)]
    if stated == kind and number in earlier:
        return
    if stated == kind and number.isdecimal() and int(number) > int(version):
        raise UsageError(
            f"{path}: written by a newer version, as {schema}; this one reads {reads}: update pytest-lmeval"
        )
    raise UsageError(f"{path}: schema: expected {reads}, got {schema!r:.80}")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.80} is too large for a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
