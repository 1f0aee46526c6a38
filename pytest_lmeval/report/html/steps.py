"""What an example of an eval function did, as the page is given it: its repeats, each with its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.compact_json import encode
from pytest_lmeval.leaderboard.details import DECIDED_BY, DURATION, FUNCTION, OUTPUT, WHY
from pytest_lmeval.text import LONGEST_SHOWN, cut
from pytest_lmeval.types import ExampleResult

MOST_STEPS = 2_000
"""How many steps of a repeat are shown, the first and the last."""
MOST_TEXT = 400_000
"""How many characters the inputs and outputs of an example have together, shortened alike where they have more."""
_SIDES = ("input", "output", "thoughts")
_SHORTEST = 100
_TOO_MUCH = 1e15
_SHOWN_APART = (OUTPUT, "notes", "steps", "reason", "repeats", DECIDED_BY, DURATION, FUNCTION, WHY)
# A vote among predictions; functions have none.
_OF_NO_USE = ("majority_score",)


def function_fields(result: ExampleResult) -> dict[str, Any]:
    """Return what replaces the details of an eval function's example, whatever a ledger holds under their names.

    ``runs`` has an entry for each repeat, with what was recorded of ``output``, ``reason``, ``decided_by``, ``notes``
    and ``steps``, and as ``left_out`` how many steps after the first half are not among them.
    """
    details = result.details
    given = details.get("repeats")
    repeats = [each if isinstance(each, Mapping) else {} for each in given] if isinstance(given, list) else [details]
    shown = [_steps(each.get("steps")) for each in repeats]
    texts = [_size(step[side]) for steps, _ in shown for step in steps for side in _SIDES if side in step]
    longest = _longest(texts)
    runs = [_run(each, steps, left, longest) for each, (steps, left) in zip(repeats, shown, strict=True)]
    function = details.get(FUNCTION)
    rest = {name: value for name, value in details.items() if name not in (*_SHOWN_APART, *_OF_NO_USE)}
    name = function.get("name") if isinstance(function, Mapping) else ""
    took = details.get(DURATION)
    known = {"took": took} if _amount(took) is not None else {}
    return {"function": str(name or ""), "runs": runs, "details": rest, **known}


def _run(given: Mapping[str, Any], steps: Sequence[dict[str, Any]], left: int, longest: int) -> dict[str, Any]:
    notes = given.get("notes")
    output = given.get(OUTPUT)
    reasons = given.get(WHY)
    fields = {
        "output": "" if output is None else _fitted(output, LONGEST_SHOWN),
        "reason": cut(str(given.get("reason") or "")),
        "decided_by": str(given.get(DECIDED_BY) or ""),
        "why": {str(name): cut(str(why)) for name, why in reasons.items()} if isinstance(reasons, Mapping) else {},
        "notes": {str(name): _fitted(note, LONGEST_SHOWN) for name, note in notes.items()}
        if isinstance(notes, Mapping)
        else {},
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
    usage = given.get("usage")
    ms = _amount(given.get("ms"))
    fields = {
        "name": cut(str(given.get("name") or ""), 1000),
        "start_ms": _amount(given.get("start_ms")),
        "usage": {str(name): amount for name, amount in usage.items() if _amount(amount) is not None}
        if isinstance(usage, Mapping)
        else {},
        "error": cut(str(given.get("error") or ("cancelled" if given.get("cancelled") else ""))),
    }
    step = {"kind": cut(str(given.get("kind") or ""), 100), **{name: each for name, each in fields.items() if each}}
    if "verdict" in given:
        from pytest_lmeval.leaderboard.explained import verdict_text

        if verdict := verdict_text(given):
            step["verdict"] = cut(verdict)
    said = {side: given[side] for side in _SIDES if given.get(side) is not None}
    if "thoughts" in said:
        said["thoughts"] = str(said["thoughts"])
    return {**step, **said, **({} if ms is None else {"ms": ms})}


def _amount(given: Any) -> float | None:
    is_one = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < _TOO_MUCH
    return given if is_one else None


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(encode(value))


def _longest(sizes: Sequence[int]) -> int:
    longest = LONGEST_SHOWN
    while longest > _SHORTEST and sum(min(size, longest) for size in sizes) > MOST_TEXT:
        longest //= 2
    return longest


def _shortened(step: dict[str, Any], longest: int) -> dict[str, Any]:
    return step | {side: _fitted(step[side], longest) for side in _SIDES if side in step}


def _fitted(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return cut(value, longest)
    text = encode(value)
    if len(text) <= longest:
        return value
    if _is_conversation(value) and len(value) * _SHORTEST < longest:
        return [{**each, "content": cut(each["content"], longest // len(value))} for each in value]
    return cut(text, longest)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("content"), str) for each in value
    )
