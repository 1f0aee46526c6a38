"""Whether what comes in as a model's answer can be one: numbers finite and not negative, texts text, calls calls.

Every answer comes through here once, whoever gives it: an adapter, a judge, a cache or a recording. What is behind
this border need not ask again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_lmeval.types import Completion, LogProb, Response, ToolCall

MOST = 1e15
"""The largest number of tokens, milliseconds or units of money that an answer may tell: sums of them stay finite."""

_TEXTS = ("text", "thoughts", "finish_reason", "served_by")
_AMOUNTS = ("latency_ms", "ttft_ms", "cost")
_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "retries")


def checked(answer: Response) -> Response:
    """Return ``answer`` with plain values in its fields; raise ValueError that says what is wrong with the first other.

    None means unknown. Numbers and texts of other types, such as numpy's, become Python's own: a subclass may not
    travel between processes.
    """
    return checked_completion(answer) if isinstance(answer, Completion) else _checked_logprob(answer)


def checked_completion(answer: Completion) -> Completion:
    """Return a completion as :func:`checked` does."""
    # Nearly every answer is right as it is: only a field that is not is looked at again.
    changed: dict[str, Any] = {}
    for name in _TEXTS:
        if type(value := getattr(answer, name)) is not str:
            changed[name] = _text(name, value)
    for name in _AMOUNTS:
        value = getattr(answer, name)
        if value is not None and not (type(value) is float and 0.0 <= value <= MOST):
            changed[name] = _number(name, value)
    for name in _COUNTS:
        value = getattr(answer, name)
        if value is not None and not (type(value) is int and 0 <= value <= MOST):
            changed[name] = count(name, value)
    for name, default, check in _RARE:
        if (value := getattr(answer, name)) is not default:
            changed[name] = check(name, value)
    return replace(answer, **changed) if changed else answer


def _checked_logprob(answer: LogProb) -> LogProb:
    found = replace(
        answer,
        total=_logprob("total", answer.total),
        tokens=_logprobs("tokens", answer.tokens),
        greedy=_flag("greedy", answer.greedy),
        latency_ms=None if answer.latency_ms is None else _number("latency_ms", answer.latency_ms),
        ids=_ids("ids", answer.ids),
        cached=_flag("cached", answer.cached),
        retries=None if answer.retries is None else count("retries", answer.retries),
    )
    if found.ids and len(found.ids) != len(found.tokens):
        raise ValueError(f"{len(found.ids)} ids for {len(found.tokens)} tokens of a continuation")
    return found


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    # None is what clients have for no reason and no thoughts; without a text there is no answer.
    return "" if value is None and name != "text" else _refuse(name, "text", value)


def _number(name: str, value: Any) -> float:
    found = _as_float(value)
    return found if 0.0 <= found <= MOST else _refuse(name, f"a finite number from 0 to {MOST:g}", value)


def count(name: str, value: Any) -> int:
    """Return a number of tokens or attempts as int; raise ValueError for any other value."""
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
    return tuple(
        [value if type(value) is float and -MOST < value < MOST else _logprob(name, value) for value in values]
    )


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
    # An adapter may give the arguments by name.
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, default=str)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"tool calls whose arguments are no JSON: {error}") from None
    return ToolCall(str(id or f"call{number:05}"), str(name), str(arguments))


def _flag(name: str, value: Any) -> bool:
    # numpy has truth values of its own.
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
    raise ValueError(f"{name} {_shown(value)}; expected {expected}")


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except Exception:  # an int of too many digits, or a class of somebody's own
        return f"of type {type(value).__name__}"


_RARE: tuple[tuple[str, Any, Callable[[str, Any], Any]], ...] = (
    ("logprobs", (), _logprobs),
    ("confidence", None, _share),
    ("tool_calls", (), _calls),
    ("exchanges", (), _nothing),
    ("asides", (), _nothing),
    ("cached", False, _flag),
)
