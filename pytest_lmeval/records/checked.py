"""Check the numbers, strings and tool calls in models' answers.

This module checks each answer from an adapter, judge, cache or recording once, so later code need not repeat the check.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pytest_lmeval import extra
from pytest_lmeval.types import Completion, LogProb, ToolCall

MOST = 1e15
"""The largest number of tokens, milliseconds or currency units in an answer; it keeps sums finite."""
_Answer = TypeVar("_Answer", Completion, LogProb, Completion | LogProb)


def checked(answer: _Answer) -> _Answer:
    """Return ``answer`` with plain Python values; raise a ValueError that describes the first invalid value.

    None means unknown. Convert subclasses of numbers and strings, such as numpy's, because other processes may be
    unable to load them.
    """
    changed: dict[str, Any] = {}
    for name, (default, check) in (_COMPLETION if isinstance(answer, Completion) else _LOGPROB).items():
        value = getattr(answer, name)
        if value is not default and (plain := check(name, value)) is not value:
            changed[name] = plain
    found = replace(answer, **changed) if changed else answer
    if isinstance(found, LogProb) and found.ids and len(found.ids) != len(found.tokens):
        raise ValueError(f"{len(found.ids)} ids for {len(found.tokens)} tokens of a continuation")
    return found


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    # Clients use None for a missing finish reason and missing thoughts, but an answer must have text.
    return "" if value is None and name != "text" else _refuse(name, "text", value)


def _number(name: str, value: Any) -> float:
    found = _as_float(value)
    return found if 0.0 <= found <= MOST else _refuse(name, f"a finite number from 0 to {MOST:g}", value)


def count(name: str, value: Any) -> int:
    """Return a whole number, such as a count of tokens, as an int; raise ValueError for any other value."""
    if type(value) is int and 0 <= value <= MOST:
        return value
    found = _as_float(value)
    return int(found) if 0.0 <= found <= MOST and found.is_integer() else _refuse(name, "a whole number from 0", value)


def _share(name: str, value: Any) -> float:
    found = _as_float(value)
    return found if 0.0 <= found <= 1.0 else _refuse(name, "a number in [0, 1]", value)


def _logprob(name: str, value: Any) -> float:
    found = _as_float(value)
    return found if math.isfinite(found) else _refuse(name, "a log-probability that is a finite number", value)


def _logprobs(name: str, values: Any) -> tuple[float, ...]:
    if values is None:
        return ()
    if not isinstance(values, list | tuple):
        _refuse(name, "a list of log-probabilities", values)
    return tuple([_logprob(name, value) for value in values])


def _ids(name: str, values: Any) -> tuple[int | str, ...]:
    if not isinstance(values, list | tuple):
        _refuse(name, "a list of numbers or texts", values)
    return tuple([str(value) if isinstance(value, str) else count(name, value) for value in values])


def _calls(name: str, values: Any) -> tuple[ToolCall, ...]:
    if values is None:
        return ()
    if not isinstance(values, list | tuple):
        _refuse(name, "a list of (id, name, arguments)", values)
    return tuple([_call(number, value) for number, value in enumerate(values)])


def _call(number: int, value: Any) -> ToolCall:
    if not isinstance(value, list | tuple) or len(value) != 3 or not isinstance(value[1], str):
        raise ValueError(f"tool calls that are not (id, name, arguments): {value!r:.80}")
    id, name, arguments = value
    # An adapter may give the arguments as an object.
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, default=str)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"tool calls whose arguments are not JSON: {error}") from None
    return ToolCall(str(id or f"call{number:05}"), str(name), str(arguments))


def _flag(name: str, value: Any) -> bool:
    # numpy has its own booleans.
    return bool(value) if type(value).__name__ in ("bool", "bool_") else _refuse(name, "true or false", value)


def _nothing(name: str, value: Any) -> Any:
    return _refuse(name, "nothing, since the run itself fills it", value)


def _as_float(value: Any) -> float:
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _refuse(name: str, expected: str, value: Any) -> Any:
    try:
        shown = f"{value!r:.80}"
    except Exception:  # an int with too many digits, or an object of another package
        shown = f"of type {type(value).__name__}"
    raise ValueError(f"{name} {shown}; expected {expected}")


# Each field has a value that needs no check, and a check for all other values.
_Checks = Mapping[str, tuple[Any, Callable[[str, Any], Any]]]
_COMPLETION: _Checks = {
    **dict.fromkeys(("text", "thoughts", "finish_reason", "served_by"), ("", _text)),
    **dict.fromkeys(("latency_ms", "ttft_ms", "cost"), (None, _number)),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens", "retries"), (None, count)),
    "logprobs": ((), _logprobs),
    "confidence": (None, _share),
    "tool_calls": ((), _calls),
    "exchanges": ((), _nothing),
    "asides": ((), _nothing),
    "cached": (False, _flag),
    "extra": ("", lambda name, value: extra.checked(value)),
}
_LOGPROB: _Checks = {
    "total": (object(), _logprob),  # always checked
    "tokens": ((), _logprobs),
    "greedy": (False, _flag),
    "latency_ms": (None, _number),
    "ids": ((), _ids),
    "cached": (False, _flag),
    "retries": (None, count),
}
