"""Turn an example into fields for the page, without empty or repeated values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pytest_lmeval.leaderboard.details import METRIC
from pytest_lmeval.text import LONGEST_SHOWN, cut, item_name, node_name
from pytest_lmeval.types import UNSCORED, ExampleResult, Message

Flip = Literal["worse", "better", ""]
Flips = Mapping[tuple[str, str], Flip]


class PromptStart(NamedTuple):
    """The text and messages with which all of a task's prompts begin."""

    text: str = ""
    messages: tuple[Message, ...] = ()


NO_START = PromptStart()
NOTHING: Mapping[str, object] = MappingProxyType({})


def urgency(result: ExampleResult, flip: Flip) -> int:
    """Return an example's rank; a page that cannot hold all examples embeds the examples with the lowest ranks."""
    status = result.outcome.status
    reasons = (
        flip == "worse",
        status != "passed" and result.must_pass,
        status in UNSCORED,
        status in ("failed", "below"),
        result.outcome.unparsed,
        flip == "better",
        status == "excluded",
        True,
    )
    return reasons.index(True)


def example_fields(
    now: ExampleResult, start: PromptStart = NO_START, against: Mapping[str, object] = NOTHING
) -> dict[str, Any]:
    """Return the non-empty fields of an example for the page.

    The prompt omits ``start``, which all prompts of the task share. ``against`` holds the fields from a comparison.
    """
    question, answer, outcome = now.question, now.answer, now.outcome
    fields = {
        "id": question.id,
        "status": outcome.status,
        "score": outcome.score,
        "threshold": outcome.threshold,
        "metric": question.metric,
        "rule": "" if question.post_process == "none" else question.post_process,
        "prompt": cut(question.prompt[len(start.text) :]),
        "messages": page_messages(question.messages[len(start.messages) :]) if question.messages else [],
        "targets": [*map(cut, question.targets or _wanted(now))],
        "answers": answers(now),
        "category": question.category,
        "tags": list(question.tags),
        "cluster": question.cluster,
        "ms": None if answer.latency_ms is None else round(answer.latency_ms, 4),
        "error": cut(outcome.error),
        "details": outcome.details,
        "thoughts": _thoughts(answer.exchanges) if answer.exchanges else [],
        "usage": answer.usage,
        "line": question.line,
        "metrics": outcome.metrics,
        "item": _item(now),
        "unparsed": outcome.unparsed,
        "cut_off": answer.cut_off,
        "must_pass": question.must_pass,
        "quarantine": dict(outcome.quarantine),
        **against,
    }
    if question.metric == METRIC and is_scored_by_function(now):
        from pytest_lmeval.report.html.steps import function_fields

        fields.update(function_fields(now))
    return filled(fields)


def page_messages(messages: Sequence[Message]) -> Sequence[object]:
    """Return a prompt's messages as JSON, cut like the page's other text."""
    from pytest_lmeval.report.html.messages import shown_messages

    return shown_messages(messages)


def _thoughts(exchanges: Iterable[Mapping[str, Any]]) -> list[str]:
    thoughts = [cut(str(each.get("thoughts", ""))) for each in exchanges]
    return thoughts if any(thoughts) else []


def _wanted(result: ExampleResult) -> Sequence[str]:
    if is_scored_by_function(result):
        return ()
    from pytest_lmeval.leaderboard.explained import wanted_of

    return wanted_of(result)


def _item(result: ExampleResult) -> str:
    """Return the item's name for use in a command, or "" if it equals the example's id."""
    question = result.question
    name = node_name(question.item) if question.item else item_name(question.id)
    return "" if name == question.id else name


def answers(result: ExampleResult) -> list[dict[str, Any]]:
    outputs, found, thoughts = result.answer.outputs, result.outcome.predictions, result.answer.thoughts
    if len(outputs) == len(found) == 1 and not thoughts:
        return [_answer(outputs[0], found[0])]
    predictions = [*found, *[None] * (len(outputs) - len(found))]
    thoughts = thoughts or ("",) * len(outputs)
    answers = []
    for output, prediction, thought in zip(outputs, predictions, thoughts, strict=False):
        answer = _answer(output, prediction)
        answers.append({**answer, "thoughts": cut(thought)} if thought else answer)
    return answers


def _answer(output: str, prediction: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"output": cut(output)}
    if prediction is None or prediction == output:
        return answer
    answer["prediction"] = cut(prediction)
    span = extracted_span(output, prediction) if len(output) <= LONGEST_SHOWN else None
    return answer if span is None else {**answer, "span": list(span)}


def is_scored_by_function(result: ExampleResult) -> bool:
    """Return True if an eval function made the result, even if its source code is unknown."""
    return result.metric == METRIC and not result.outputs


def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    # Keep the number 0, which is not an empty value.
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}


def extracted_span(output: str, prediction: str) -> tuple[int, int] | None:
    """Return the start and end of ``prediction`` in ``output``, in UTF-16 code units.

    Return None if ``output`` does not contain ``prediction`` exactly once, or only adds whitespace around it.
    """
    if not prediction or output.strip() == prediction.strip() or output.count(prediction) != 1:
        return None
    before = output[: output.index(prediction)]
    start, size = (len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in (before, prediction))
    return start, start + size
