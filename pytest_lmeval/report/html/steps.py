"""Turn an eval function's result into fields for the page: its repeats and their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.compact_json import encode
from pytest_lmeval.leaderboard.details import DECIDED_BY, DURATION, FUNCTION, OUTPUT, WHY, shown_name
from pytest_lmeval.text import LONGEST_SHOWN, cut
from pytest_lmeval.types import ExampleResult, is_media

MOST_STEPS = 2_000
"""The maximum number of a repeat's steps on the page, half of them from the start and half from the end."""
MOST_TEXT = 400_000
"""The length in characters above which an example's inputs and outputs are shortened, all to the same limit."""
_SIDES = ("input", "output", "thoughts")
_SHORTEST = 100
_TOO_MUCH = 1e15
# ``majority_score`` comes from a vote among predictions, but eval functions have no predictions.
_SHOWN_APART = frozenset(
    (OUTPUT, "notes", "steps", "reason", "repeats", DECIDED_BY, DURATION, FUNCTION, WHY, "majority_score")
)


def function_fields(result: ExampleResult) -> dict[str, Any]:
    """Return fields that replace an eval function's details; values from a ledger may have any type.

    ``runs`` has an entry for each repeat, with its ``output``, ``reason``, ``decided_by``, ``why``, ``notes`` and
    ``steps``. ``left_out`` is the number of steps omitted from the middle.
    """
    details = result.details
    given = details.get("repeats")
    repeats = [each if isinstance(each, Mapping) else {} for each in given] if isinstance(given, list) else [details]
    shown = [_steps(each.get("steps")) for each in repeats]
    said = [step[side] for steps, _ in shown for step in steps for side in _SIDES if side in step]
    longest = _longest([len(each if isinstance(each, str) else encode(each)) for each in said])
    runs = [_run(each, steps, left, longest) for each, (steps, left) in zip(repeats, shown, strict=True)]
    function = details.get(FUNCTION)
    rest = {name: value for name, value in details.items() if name not in _SHOWN_APART}
    name = function.get("name") if isinstance(function, Mapping) else ""
    took = details.get(DURATION)
    known = {"took": took} if _amount(took) is not None else {}
    return {"function": str(name or ""), "runs": runs, "details": rest, **known}


def _run(given: Mapping[str, Any], steps: Sequence[dict[str, Any]], left: int, longest: int) -> dict[str, Any]:
    why, notes = (found if isinstance(found := given.get(name), Mapping) else {} for name in (WHY, "notes"))
    fields = {
        "output": fitted(given.get(OUTPUT) or "", LONGEST_SHOWN),
        "reason": cut(str(given.get("reason") or "")),
        DECIDED_BY: str(given.get(DECIDED_BY) or ""),
        "why": {str(name): cut(str(each)) for name, each in why.items()},
        "notes": {str(name): fitted(note, LONGEST_SHOWN) for name, note in notes.items()},
        "steps": [_shortened(step, longest) for step in steps],
        "left_out": left,
    }
    return {name: value for name, value in fields.items() if value}


def _steps(given: Any) -> tuple[list[dict[str, Any]], int]:
    steps = [step for step in given if isinstance(step, Mapping)] if isinstance(given, list) else []
    left = max(0, len(steps) - MOST_STEPS)
    if left:
        steps = [*steps[: MOST_STEPS // 2], *steps[-MOST_STEPS // 2 :]]
    return [_step(step) for step in steps], left


def _step(given: Mapping[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = {"kind": cut(str(given.get("kind") or ""), 100)}
    if name := shown_name(given):
        step["name"] = cut(name, 1000)
    if start := _amount(given.get("start_ms")):
        step["start_ms"] = start
    if usage := _usage(given.get("usage")):
        step["usage"] = usage
    if error := given.get("error") or ("cancelled" if given.get("cancelled") else ""):
        step["error"] = cut(str(error))
    if "verdict" in given:
        from pytest_lmeval.leaderboard.explained import verdict_text

        if verdict := verdict_text(given):
            step["verdict"] = cut(verdict)
    for side in _SIDES:
        if (said := given.get(side)) is not None:
            step[side] = str(said) if side == "thoughts" else said
    if (ms := _amount(given.get("ms"))) is not None:
        step["ms"] = ms
    return step


def _usage(given: Any) -> dict[str, Any]:
    amounts = given.items() if isinstance(given, Mapping) else ()
    return {str(name): amount for name, amount in amounts if _amount(amount) is not None}


def _amount(given: Any) -> float | None:
    is_one = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _TOO_MUCH
    return given if is_one else None


def _longest(sizes: Sequence[int]) -> int:
    longest = LONGEST_SHOWN
    while longest > _SHORTEST and sum(min(size, longest) for size in sizes) > MOST_TEXT:
        longest //= 2
    return longest


def _shortened(step: dict[str, Any], longest: int) -> dict[str, Any]:
    for side in _SIDES:
        if side in step:
            step[side] = fitted(step[side], longest)
    return step


def fitted(value: Any, longest: int) -> Any:
    """Cut a JSON value to about ``longest`` characters; if possible, keep the messages of a conversation separate."""
    if isinstance(value, str):
        return cut(value, longest)
    text = encode(value)
    if len(text) <= longest:
        return value
    if _is_conversation(value) and len(value) * _SHORTEST < longest:
        return [{**each, "content": _cut(each["content"], longest // len(value))} for each in value]
    return cut(text, longest)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and (isinstance(content := each.get("content"), str) or _has_media(content))
        for each in value
    )


def _has_media(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, str) or is_media(part) for part in content)


def _cut(content: str | Sequence[Any], longest: int) -> Any:
    if isinstance(content, str):
        return cut(content, longest)
    return [cut(part, longest // len(content)) if isinstance(part, str) else part for part in content]
