"""Explain a result to readers: why it failed, the expected and actual answers, and the judges' reasons."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from pytest_lmeval.types import ExampleResult, Message

RUBRIC_HEAD = 80
"""The maximum number of characters of a rubric in a recorded verdict."""


def explanation_of(result: ExampleResult) -> str:
    """Return why an eval function's example failed, or its scores if no reason or error is recorded."""
    details = next((each for each in [result.details, *details_of(result)] if "reason" in each), {})
    return str(details.get("reason") or result.error) or scores_text(result)


def scores_text(result: ExampleResult) -> str:
    """Return an eval function's named scores as one string, with their recorded reasons."""
    reasons = [each[WHY] for each in details_of(result) if isinstance(each.get(WHY), Mapping)]
    texts = []
    for name, value in result.metrics.items():
        why = "; ".join(dict.fromkeys(str(each[name]) for each in reasons if name in each))
        texts.append(f"{name} {value:.4g}" + (f" ({' '.join(why.split())})" if why else ""))
    return ", ".join(texts)


def verdict_text(step: Mapping[str, Any]) -> str:
    """Return the judge's verdict from a step, with its reason, or "" if the step has no verdict."""
    verdict = step.get("verdict")
    if not isinstance(verdict, Mapping):
        return ""
    value = verdict.get("label", verdict.get("score"))
    value = f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
    rubric = str(verdict.get("rubric") or "")
    rubric = rubric if len(rubric) < RUBRIC_HEAD else f"{rubric[: RUBRIC_HEAD - 3].rstrip()}..."
    by = f" by {rubric!r}" if rubric else ""
    return f"{value}{by}: {verdict.get('reason') or 'no reason given'}"


def reasons_of(result: ExampleResult) -> str:
    """Return the judges' reasons for their verdicts on the response that reports show, or ""."""
    found = details_of(result)
    if is_function(result):
        steps = found[worst_repeat(result, len(found))].get("steps")
        verdicts = (
            [verdict_text(each) for each in steps if isinstance(each, Mapping)] if isinstance(steps, list) else []
        )
        return "\n".join(filter(None, verdicts))
    own = found[min(shown_response(result), len(found) - 1)]
    if CHECKS in own:
        return "; ".join(_judged(own.get(CHECKS)))
    return str(own.get("reason") or "") if "judge" in own else ""


def shown_output(result: ExampleResult) -> str:
    """Return the application's answer as text or JSON, if possible from the worst repeat, or "" without an answer."""
    repeats = details_of(result)
    found = [repeats[worst_repeat(result, len(repeats))], *repeats]
    value = next((each[OUTPUT] for each in found if each.get(OUTPUT) is not None), "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def worst_repeat(result: ExampleResult, repeats: int) -> int:
    """Return the index of an eval function's repeat with the lowest score, or 0 if the scores are unknown."""
    scores = result.details.get("scores")
    return scores.index(min(scores)) if isinstance(scores, list) and len(scores) == repeats else 0


def wanted_of(result: ExampleResult) -> Sequence[str]:
    """Return the expected answers: the targets or, without targets, the expected calls or the failed checks."""
    if result.targets:
        return result.targets
    details = first_details(result)
    if "expected" in details:
        return expected_in(result.metric, details)
    return [*_unpassed(details["checks"])] if "checks" in details else ()


def _judged(checks: object) -> Iterator[str]:
    for check in checks if isinstance(checks, Sequence) else ():
        if isinstance(check, Mapping) and check.get("reason"):
            yield f"{check.get('name', '')} {check.get('score')}: {check['reason']}"


def _unpassed(checks: object) -> Iterator[str]:
    """Yield each failed check's name and targets; skip malformed checks, which a ledger may contain."""
    for check in checks if isinstance(checks, Sequence) else ():
        if isinstance(check, Mapping) and check.get("passed") is False:
            targets = check.get("targets")
            named = targets if isinstance(targets, list) else [targets or ""]
            yield f"{check.get('name', '')}: {' | '.join(map(str, named))}".removesuffix(": ")


def wanted_text(result: ExampleResult, *, quoted: bool = True) -> str:
    """Return the expected answers as one string; if ``quoted`` is True, put each target in quotes."""
    if not result.targets:
        return ", ".join(wanted_of(result))
    return " | ".join(map(repr, result.targets) if quoted else result.targets)


def prompt_text(result: ExampleResult) -> str:
    """Return the prompt as text; for a conversation, return its messages with their roles."""
    return messages_text(result.messages) if result.messages else result.prompt


def messages_text(messages: Iterable[Message]) -> str:
    """Return the messages as text, each preceded by its role; indent all lines of a message except the first."""
    return "\n".join(map(_message_text, messages))


def _message_text(message: Message) -> str:
    calls = (f"{call.name}({call.arguments})" for call in message.tool_calls)
    text = "\n".join(filter(None, [message.content, *calls]))
    # A line of a message must not look like the beginning of another message.
    return f"{message.role}: {text}".replace("\n", "\n  ")


def answers_in(output: str) -> Sequence[str]:
    """Return the answers in a conversation's output, in order; any other output is a single answer."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return (output,)
    is_list = isinstance(found, list) and all(isinstance(answer, str) for answer in found)
    return found if is_list else (output,)
