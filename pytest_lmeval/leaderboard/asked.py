"""Find an example's question and answer, for reports that show each example on one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.leaderboard.details import is_function, shown_response, steps_of
from pytest_lmeval.leaderboard.explained import shown_output, wanted_of, worst_repeat
from pytest_lmeval.types import Completion, ExampleResult, with_placeholder

QUESTIONS = ("question", "prompt", "input", "query", "text", "instruction", "message", "problem", "q")
"""The usual names of a question column, most common first."""
ANSWERS = ("answer", "target", "expected", "expected_output", "output", "label", "reference", "ideal", "solution")
"""The usual names of an answer column."""
_MODEL = ("request", "model")
_SHORTEST = 15
_MOST = 4_000


def asked(result: ExampleResult) -> str:
    """Return an example's question: the user's last message, or the last paragraph of a prompt without roles.

    For an eval function, return the question from its row or else its first request, or "". Cut a long question.
    """
    if is_function(result):
        return (_column(result, QUESTIONS) or _first_request(result))[:_MOST]
    said = [message.content for message in result.messages if message.role == "user"]
    return (said[-1] if said else _last_paragraph(result.prompt))[:_MOST]


def wanted(result: ExampleResult) -> Sequence[str]:
    """Return the expected answers; for an eval function, return the answer from its row."""
    if not is_function(result):
        return wanted_of(result)
    return [text] if (text := _column(result, ANSWERS)) else []


def answered(result: ExampleResult) -> str:
    """Return the answer to show; for an eval function without an output, return the model's last answer."""
    if is_function(result):
        return shown_output(result) or _last_answer(result)
    return result.predictions[shown_response(result)] if result.predictions else ""


def _column(result: ExampleResult, names: Sequence[str]) -> str:
    """Return the first text or number that an eval function's row has under any of the ``names``, or ""."""
    try:
        row = json.loads(result.prompt)
    except (ValueError, RecursionError):
        return ""
    values = {str(name).lower(): value for name, value in row.items()} if isinstance(row, dict) else {}
    found = (values[name] for name in names if name in values)
    return next((str(value) for value in found if isinstance(value, str | int | float) and str(value).strip()), "")


def _first_request(result: ExampleResult) -> str:
    inputs = (step["input"] for step in _model_steps(next(steps_of(result.details), ())) if "input" in step)
    given = next(inputs, "")
    return given if isinstance(given, str) else _last_message(given)


def _last_message(messages: Any) -> str:
    """Return the text of the user's last message, or ""; the messages that a step recorded may be malformed."""
    given = messages if isinstance(messages, list) else []
    said = [_words(each.get("content")) for each in given if isinstance(each, Mapping) and each.get("role") == "user"]
    return next((text for text in reversed(said) if text.strip()), "")


def _words(content: Any) -> str:
    """Return a message's content as text, with a placeholder for each medium."""
    parts = content if isinstance(content, list) else [content]
    return "\n".join([text for text in map(with_placeholder, parts) if isinstance(text, str)])


def _last_paragraph(prompt: str) -> str:
    paragraphs = prompt[-_MOST:].strip().split("\n\n")
    return paragraphs[-1] if len(paragraphs[-1]) >= _SHORTEST else "\n".join(paragraphs[-2:])


def _last_answer(result: ExampleResult) -> str:
    repeats = [*steps_of(result.details)]
    steps = [*_model_steps(repeats[worst_repeat(result, len(repeats))])]
    answers = (step.get("output") for step in reversed(steps) if not (step.get("error") or step.get("cancelled")))
    return next((_spoken(answer) for answer in answers if answer is not None), "")


def _model_steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (step for step in steps if step.get("kind") in _MODEL)


def _spoken(answer: Any) -> str:
    if not isinstance(answer, str):
        return json.dumps(answer, ensure_ascii=False)
    found = Completion.of_output(answer)
    return found.text or ", ".join(f"{call.name}({call.arguments})" for call in found.tool_calls)
