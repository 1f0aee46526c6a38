"""The values of a file that a run wrote, checked: it may have been written, or changed, by anybody."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, get_args

from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.answers import recorded_answer
from pytest_lmeval.types import RESULT_FIELDS, WITHOUT_SCORE, ExampleResult, Status

_STATUSES = frozenset(get_args(Status))
_REQUIRED_TEXTS = ("task", "id", "metric", "hash")
_TEXTS = (
    "prompt",
    "post_process",
    "category",
    "error",
    "adapter",
    "request",
    "cluster",
    "item",
    "scoring_hash",
    "adapter_key",
)
_LISTS = ("outputs", "predictions", "targets")
_TIMES = ("request_ms", "ttft_ms")
_INFO_COUNTS = ("available", "selected")
_INFO_FIELDS = tuple(TaskInfo.__dataclass_fields__)


def recorded_result(fields: Mapping[str, Any]) -> ExampleResult:
    """Return the result that ``fields`` hold; raise ValueError that names the first field at fault.

    Fields that this version does not know are passed over, optional ones may be missing.
    """
    known = {name: fields[name] for name in RESULT_FIELDS if name in fields}
    for name in _REQUIRED_TEXTS:
        _expect(isinstance(known.get(name), str), name, known.get(name), "text")
    for name in _TEXTS:
        _expect(isinstance(known.get(name, ""), str), name, known.get(name), "text")
    for name in _LISTS:
        known[name] = recorded_texts(known.get(name, []), name)
    known["thoughts"] = recorded_texts(known.get("thoughts", []), "thoughts")
    known["exchanges"] = recorded_exchanges(known.get("exchanges", []))
    for name in ("usage", "details", "metrics", "quarantine", "served_by"):
        _expect(isinstance(known.get(name, {}), dict), name, known.get(name), "an object")
    for name in ("unparsed", "must_pass", "cut_off"):
        _expect(isinstance(known.get(name, False), bool), name, known.get(name), "true or false")
    for name in _TIMES:
        known[name] = _times(known.get(name, []), name)
    _check_numbers(known)
    return ExampleResult(**known)


def recorded_texts(value: Any, name: str) -> tuple[str, ...]:
    """Return the texts of a field; raise ValueError that names it where it holds anything else."""
    _expect(isinstance(value, list) and all(isinstance(text, str) for text in value), name, value, "a list of texts")
    return tuple(value)


def recorded_exchanges(value: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the records of requests and answers; raise ValueError that names the first field at fault."""
    whole = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    _expect(whole, "exchanges", value, "a list of objects")
    for each in value:
        recorded_answer(each)
    return tuple(value)


def _times(value: Any, name: str) -> tuple[float, ...]:
    _expect(isinstance(value, list | tuple) and all(map(_is_number, value)), name, value, "a list of numbers")
    return tuple(value)


def recorded_info(fields: Any) -> TaskInfo:
    """Return what a ledger says of a task; raise ValueError that names the first field at fault."""
    _expect(isinstance(fields, dict), "task", fields, "an object")
    for name in ("name", "path", "metric"):
        _expect(isinstance(fields.get(name), str), name, fields.get(name), "text")
    for name in ("score_metric", "key", "display_name"):
        _expect(isinstance(fields.get(name, ""), str), name, fields.get(name), "text")
    _expect(isinstance(fields.get("sha256"), str | None), "sha256", fields.get("sha256"), "text or null")
    for name in _INFO_COUNTS:
        _expect(_is_count(fields.get(name)), name, fields.get(name), "a count or null")
    guess = fields.get("random_baseline")
    _expect(guess is None or _is_number(guess), "random_baseline", guess, "a number or null")
    _expect(isinstance(fields.get("config", {}), dict), "config", fields.get("config"), "an object")
    dealt = fields.get("shard", {})
    _expect(isinstance(dealt, dict), "shard", dealt, "an object")
    if dealt:
        recorded_texts(dealt.get("ids"), "shard.ids")
    known = {name: fields[name] for name in _INFO_FIELDS if name in fields}
    return TaskInfo(**{**known, "bad_records": recorded_texts(fields.get("bad_records", []), "bad_records")})


def recorded_aggregates(fields: Any) -> dict[str, dict[str, Any]]:
    """Return what a ledger says that tasks made of their results; raise ValueError that names the field at fault."""
    _expect(isinstance(fields, dict), "aggregates", fields, "an object")
    for task, found in fields.items():
        _expect(isinstance(found, dict), f"aggregates.{task}", found, "an object")
        for name in ("metrics", "classes", "confusion", "notes"):
            _expect(isinstance(found.get(name, {}), dict), f"aggregates.{task}.{name}", found.get(name), "an object")
        for name, value in found.get("metrics", {}).items():
            _expect(
                isinstance(value, int | float | None), f"aggregates.{task}.metrics.{name}", value, "a number or null"
            )
        score = found.get("score")
        _expect(score is None or _is_share(score), f"aggregates.{task}.score", score, "0 to 1 or null")
    return dict(fields)


def aggregates_record(aggregates: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the ledger says of the aggregates: nothing where there are none, or they are no JSON."""
    try:
        plain = json.loads(json.dumps(aggregates, default=str, allow_nan=False))
    except ValueError:
        return {}
    return {"aggregates": plain} if plain else {}


def _check_numbers(fields: Mapping[str, Any]) -> None:
    status, score = fields.get("status"), fields.get("score")
    _expect(isinstance(status, str) and status in _STATUSES, "status", status, f"one of {', '.join(sorted(_STATUSES))}")
    if status == "quarantined" and score is None:
        pass
    elif status in WITHOUT_SCORE:
        _expect(score is None, "score", score, f"null, the status being {status}")
    else:
        _expect(_is_share(score), "score", score, f"0 to 1, the status being {status}")
    threshold, latency = fields.get("threshold"), fields.get("latency_ms")
    _expect(_is_share(threshold), "threshold", threshold, "0 to 1")
    _expect(latency is None or _is_number(latency), "latency_ms", latency, "a number or null")
    for name in ("line", "cached"):
        count = fields.get(name, 0)
        _expect(count is not None and _is_count(count), name, count, "a count")
    for name, count in fields.get("served_by", {}).items():
        _expect(count is not None and _is_count(count), f"served_by.{name}", count, "a count")
    for group in ("usage", "metrics"):
        for name, amount in fields.get(group, {}).items():
            _expect(_is_number(amount), f"{group}.{name}", amount, "a number")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _expect(holds: bool, field: str, value: Any, expected: str) -> None:
    if not holds:
        raise ValueError(f"{field}: expected {expected}, got {value!r:.80}")
