"""Check the JSON, schema and values in a run's file, because someone may have edited it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING
from dataclasses import fields as fields_of
from typing import Any, NoReturn, get_args

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import RunFacts
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.numbers import is_count, is_number
from pytest_lmeval.records.answers import recorded_answer
from pytest_lmeval.types import (
    WITHOUT_SCORE,
    ExampleAnswer,
    ExampleOutcome,
    ExampleQuestion,
    ExampleResult,
    Message,
    Status,
    is_media,
)

_Kind = tuple[Callable[[Any], bool], str]
"""A function that tests a field's value, and a description of the allowed values."""
_Check = tuple[Callable[[Any], bool], str, _Kind | None, bool]
"""A field's test and description, the kind of the values in its object, and True if the field is required."""


def parse_json(text: str) -> Any:
    """Return the value of strict JSON; raise ValueError for anything else, such as NaN or nesting that is too deep."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line of strict JSON, or None for any other line."""
    try:
        value = parse_json(line.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def check_schema(path: object, schema: object, reads: str) -> None:
    """Raise UsageError unless the ``schema`` of the file at ``path`` is ``reads`` or an earlier version of it."""
    kind, _, version = reads.rpartition("/")
    stated, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    earlier = [str(each) for each in range(1, int(version) + 1)]
    if stated == kind and number in earlier:
        return
    if stated == kind and number.isdecimal() and int(number) > int(version):
        raise UsageError(f"{path}: a newer version wrote {schema}; this one reads {reads}: update pytest-lmeval")
    raise UsageError(f"{path}: schema: expected {reads}, got {schema!r:.80}")


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.80} is too large for a number")
    return number


def recorded_result(fields: Mapping[str, Any]) -> ExampleResult:
    """Return the result in ``fields``; raise a ValueError that names the first invalid field.

    Ignore unknown fields; optional fields may be missing.
    """
    known, score = _checked(fields, _RESULT), fields.get("score")
    _check_score(known["status"], score)
    for each in known.get("exchanges", ()):
        recorded_answer(each)
    if "messages" in known:
        known["messages"] = recorded_messages(known["messages"])
    return ExampleResult(**known, score=score)


def recorded_texts(value: Any, name: str) -> tuple[str, ...]:
    """Return the strings in a field as a tuple; raise a ValueError naming the field if it is not a list of strings."""
    _expect(isinstance(value, list) and all(isinstance(text, str) for text in value), name, value, "a list of texts")
    return tuple(value)


def recorded_messages(value: Iterable[Any]) -> tuple[Message, ...]:
    """Return the messages of a conversation; raise a ValueError that quotes the first invalid message."""
    for each in value:
        _expect(_is_message(each), "messages", each, "role and content, both text, and calls with id and function")
    return tuple(map(Message.from_json, value))


def _is_message(fields: Any) -> bool:
    calls = fields.get("tool_calls", [])
    content = fields.get("content")
    if isinstance(content, list):
        media = [part for part in content if not isinstance(part, str)]
        content = "" if media and all(map(is_media, media)) else None
    texts = (fields.get("role"), content, fields.get("tool_call_id", ""))
    return all(isinstance(text, str) for text in texts) and isinstance(calls, list) and all(map(_is_call, calls))


def _is_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    texts = (function.get("name"), function.get("arguments"), call.get("id")) if isinstance(function, dict) else (None,)
    return all(isinstance(text, str) for text in texts)


def recorded_exchanges(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the records of requests and answers; raise a ValueError that names the first invalid field."""
    whole = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    _expect(whole, "exchanges", value, "a list of objects")
    for each in value:
        recorded_answer(each)
    return tuple(value)


def recorded_info(fields: Any) -> TaskInfo:
    """Return a task's facts from a ledger; raise a ValueError that names the first invalid field."""
    _expect(isinstance(fields, dict), "task", fields, "an object")
    known = _checked(fields, _INFO)
    if known.get("shard"):
        recorded_texts(known["shard"].get("ids"), "shard.ids")
    for name, score in known.get("scores", {}).items():
        _check_score_row(score, f"scores.{name}", ("threshold", "min_score"))
    return TaskInfo(**known)


def recorded_scores(value: Any) -> dict[str, dict[str, float]]:
    """Return the thresholds and floors of a task's scores, by name; raise a ValueError that names an invalid field.

    Skip the deciding score, because its threshold and floor are recorded with the task.
    """
    _expect(isinstance(value, dict), "scores", value, "an object")
    for name, score in value.items():
        _check_score_row(score, f"scores.{name}", ("score", "threshold", "min_score"))
    own = {name: score for name, score in value.items() if not score.get("decides")}
    fields = ("threshold", "min_score")
    found = {
        name: {field: each[field] for field in fields if each.get(field) is not None} for name, each in own.items()
    }
    return {name: each for name, each in found.items() if each}


def _check_score_row(score: Any, name: str, fields: Iterable[str]) -> None:
    _expect(isinstance(score, dict), name, score, "an object")
    for field in fields:
        given = score.get(field)
        _expect(given is None or _is_share(given), f"{name}.{field}", given, "0 to 1 or null")


def recorded_facts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's facts from ``fields``; raise a ValueError that names the first invalid field."""
    return _checked(fields, _FACTS)


def recorded_aggregates(fields: Any) -> dict[str, dict[str, Any]]:
    """Return a ledger's aggregates by task; raise a ValueError that names an invalid field."""
    _expect(isinstance(fields, dict), "aggregates", fields, "an object")
    for task, found in fields.items():
        _expect(isinstance(found, dict), f"aggregates.{task}", found, "an object")
        for name in ("metrics", "classes", "confusion", "notes"):
            _expect(isinstance(found.get(name, {}), dict), f"aggregates.{task}.{name}", found.get(name), "an object")
        for name, value in found.get("metrics", {}).items():
            holds = isinstance(value, int | float | None)
            _expect(holds, f"aggregates.{task}.metrics.{name}", value, "a number or null")
        score = found.get("score")
        _expect(score is None or _is_share(score), f"aggregates.{task}.score", score, "0 to 1 or null")
    return dict(fields)


def _checked(fields: Mapping[str, Any], checks: Mapping[str, _Check]) -> dict[str, Any]:
    known = {}
    for name, (holds, expected, inside, required) in checks.items():
        if name not in fields and not required:
            continue
        value = fields.get(name)
        _expect(holds(value), name, value, expected)
        if inside is not None and value:
            for key, each in value.items():
                _expect(inside[0](each), f"{name}.{key}", each, inside[1])
        known[name] = tuple(value) if isinstance(value, list) else value
    return known


def _check_score(status: Status, score: Any) -> None:
    if status in WITHOUT_SCORE:
        _expect(score is None, "score", score, f"null, the status being {status}")
    elif score is not None or status != "quarantined":
        _expect(_is_share(score), "score", score, f"0 to 1, the status being {status}")


def _is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def _or_null(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _is_list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(holds, value))


def _is_a(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _expect(holds: bool, field: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{field}: expected {expected}, got {value!r:.80}")


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
_STATUSES = frozenset(get_args(Status))
_SHARE, _NUMBER, _COUNT = (_is_share, "0 to 1"), (is_number, "a number"), (is_count, "a count")
_TEXTS, _OBJECT = (_is_list_of(_is_a(str)), "a list of texts"), (_is_a(dict), "an object")
# The test and description for each type annotation.
_BY_TYPE: Mapping[str, _Kind] = {
    "Status": (lambda value: isinstance(value, str) and value in _STATUSES, f"one of {', '.join(sorted(_STATUSES))}"),
    "str": (_is_a(str), "text"),
    "str | None": (_or_null(_is_a(str)), "text or null"),
    "bool": (_is_a(bool), "true or false"),
    "int": _COUNT,
    "int | None": (_or_null(is_count), "a count or null"),
    "float": _NUMBER,
    "float | None": (_or_null(is_number), "a number or null"),
    "Sequence[str]": _TEXTS,
    "tuple[str, ...]": _TEXTS,
    "tuple[float, ...]": (_is_list_of(is_number), "a list of numbers"),
    **dict.fromkeys(
        ("tuple[Mapping[str, Any], ...]", "tuple[Message, ...]"), (_is_list_of(_is_a(dict)), "a list of objects")
    ),
    "Mapping[str, Any]": _OBJECT,
    "Mapping[str, Any] | None": (_or_null(_is_a(dict)), "an object or null"),
    **dict.fromkeys(("Mapping[str, str]", "Mapping[str, int]", "Mapping[str, float]"), _OBJECT),
}
_INSIDE = {"Mapping[str, float]": _NUMBER, "Mapping[str, int]": _COUNT}


def _checks(*kinds: Any, **others: _Kind) -> dict[str, _Check]:
    """Return the checks for dataclass fields; ``others`` override the kinds derived from annotations."""
    every = sorted((each for kind in kinds for each in fields_of(kind)), key=lambda each: str(each.type) != "str")
    return {
        each.name: (
            *others.get(each.name, _BY_TYPE[str(each.type)]),
            _INSIDE.get(str(each.type)),
            each.default is each.default_factory is MISSING,
        )
        for each in every
    }


_RESULT = _checks(ExampleQuestion, ExampleAnswer, ExampleOutcome, threshold=_SHARE)
del _RESULT["score"]  # its check depends on the status
_INFO, _FACTS = _checks(TaskInfo), _checks(RunFacts)
