"""What a result says to people: why it failed, what was wanted, what was answered instead, and what judges said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.leaderboard.details import (
    CHECKS,
    OUTPUT,
    WHY,
    details_of,
    first_details,
    is_function,
    shown_response,
)
from pytest_lmeval.metrics.tool_calls import expected_in
from pytest_lmeval.types import ExampleResult

RUBRIC_HEAD = 80
"""How many characters of a rubric are recorded with what a judge said."""


def explanation_of(result: ExampleResult) -> str:
    """Return what an eval function's result says for itself: why it failed, or its scores."""
    details = next((each for each in [result.details, *details_of(result)] if "reason" in each), {})
    if reason := str(details.get("reason") or result.error):
        return reason
    return scores_text(result)


def scores_text(result: ExampleResult) -> str:
    """Return the scores of an eval function's result by name, each with its reason, where one was given."""
    reasons = [each[WHY] for each in details_of(result) if isinstance(each.get(WHY), Mapping)]
    texts = []
    for name, value in result.metrics.items():
        why = "; ".join(dict.fromkeys(str(each[name]) for each in reasons if name in each))
        texts.append(f"{name} {value:.4g}" + (f" ({' '.join(why.split())})" if why else ""))
    return ", ".join(texts)


def verdict_text(step: Mapping[str, Any]) -> str:
    """Return what a judge was found to say in a step, and why; "" where that is not recorded."""
    verdict = step.get("verdict")
    if not isinstance(verdict, Mapping):
        return ""
    value = verdict.get("label", verdict.get("score"))
    value = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    rubric = str(verdict.get("rubric") or "")
    rubric = rubric if len(rubric) < RUBRIC_HEAD else f"{rubric[: RUBRIC_HEAD - 3].rstrip()}..."
    by = f" by {rubric!r}" if rubric else ""
    return f"{value}{by}: {verdict.get('reason') or 'no reason given'}"


def verdicts_in(details: Mapping[str, Any]) -> list[str]:
    """Return what judges said in the steps of one repeat, and why."""
    steps = details.get("steps")
    found = [verdict_text(step) for step in steps if isinstance(step, Mapping)] if isinstance(steps, list) else []
    return [said for said in found if said]


def reasons_of(result: ExampleResult) -> str:
    """Return what judges said of the response that is shown, and why, one a line; "" where none gave a reason."""
    found = details_of(result)
    if is_function(result):
        return "\n".join(verdicts_in(found[_worst(result, len(found))]))
    own = found[min(shown_response(result), len(found) - 1)]
    if CHECKS in own:
        return "; ".join(_judged(own.get(CHECKS)))
    return str(own.get("reason") or "") if "judge" in own else ""


def shown_output(result: ExampleResult) -> str:
    """Return what the application answered, as text or JSON; of repeats the worst; "" where there is nothing."""
    repeats = details_of(result)
    found = [repeats[_worst(result, len(repeats))], *repeats]
    value = next((each[OUTPUT] for each in found if each.get(OUTPUT) is not None), "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _worst(result: ExampleResult, repeats: int) -> int:
    scores = result.details.get("scores")
    return scores.index(min(scores)) if isinstance(scores, list) and len(scores) == repeats else 0


def wanted_of(result: ExampleResult) -> Sequence[str]:
    """Return what was wanted of the model: the targets, or the calls or checks that are there instead."""
    if result.targets:
        return result.targets
    details = first_details(result)
    if "expected" in details:
        return expected_in(result.metric, details)
    return [*_unpassed(details["checks"])] if "checks" in details else ()


def _judged(checks: object) -> Iterator[str]:
    """Yield name, score and reason of each check that a judge gave one for."""
    for check in checks if isinstance(checks, Sequence) else ():
        if isinstance(check, Mapping) and check.get("reason"):
            yield f"{check.get('name', '')} {check.get('score')}: {check['reason']}"


def _unpassed(checks: object) -> Iterator[str]:
    """Yield name and targets of each check that did not pass; nothing where a file has something else there."""
    for check in checks if isinstance(checks, Sequence) else ():
        if isinstance(check, Mapping) and check.get("passed") is False:
            targets = check.get("targets")
            named = targets if isinstance(targets, list) else [targets or ""]
            yield f"{check.get('name', '')}: {' | '.join(map(str, named))}".removesuffix(": ")


def wanted_text(result: ExampleResult, *, quoted: bool = True) -> str:
    """Return what was wanted in one text: any of the targets, ``quoted`` or not, or all of the calls."""
    if not result.targets:
        return ", ".join(wanted_of(result))
    return " | ".join(map(repr, result.targets) if quoted else result.targets)


def answers_in(output: str) -> Sequence[str]:
    """Return the answers that the output of a conversation is made of, in order; of any other, itself."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return (output,)
    is_list = isinstance(found, list) and all(isinstance(answer, str) for answer in found)
    return found if is_list else (output,)
