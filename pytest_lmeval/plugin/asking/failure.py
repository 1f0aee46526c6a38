"""Build an example's failure message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_lmeval.leaderboard.details import (
    CHECKS,
    DURATION,
    FUNCTION,
    NO_ROW,
    OUTPUT,
    WHY,
    details_of,
    is_function,
    responses_under,
    shown_response,
)
from pytest_lmeval.leaderboard.explained import prompt_text, reasons_of, scores_text, shown_output, wanted_text
from pytest_lmeval.leaderboard.passing import PASSES, THRESHOLDS, missed_lines
from pytest_lmeval.metrics.tool_calls import expected_in
from pytest_lmeval.numbers import beside
from pytest_lmeval.plugin.settings.models import rerun_facts
from pytest_lmeval.report.wording import rerun_parts, with_item
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_PROMPT_TAIL = 600
_TEXT_HEAD = 2000
_THOUGHTS_TAIL = 80
_FOR_PROGRAMS = frozenset({"key", "adapter_key", "prompt_hash"})
_OF_FUNCTIONS = frozenset({"steps", OUTPUT, "repeats", "majority_score", DURATION, FUNCTION, PASSES, THRESHOLDS, WHY})
_MARK = "\n    | "
_RERUN_PARTS = pytest.StashKey[dict[str, tuple[str, str]]]()


class ExampleFailed(Exception):
    """An exception that fails an item; reports show only the exception's text."""


def explain(result: ExampleResult, item: pytest.Item, before: ExampleResult | None = None) -> str:
    """Describe a failed example: verdict, prompt, output, prediction, targets, details and rerun command.

    ``before`` is the example's result in the baseline, or None.
    """
    number = shown_response(result)
    lines = [_verdict(result)]
    if not is_function(result):
        lines += _block("prompt", prompt_text(result), tail=_PROMPT_TAIL)
    elif result.prompt != NO_ROW:
        lines += _block("row", result.prompt, tail=_PROMPT_TAIL)
    lines += _answer(result, number)
    if result.metric != CHECKS and (wanted := wanted_text(result)):
        lines += _block("targets" if result.targets else "expected calls", wanted)
    lines += _details(result, number)
    if before is not None and before.predictions:
        lines += _block(f"baseline ({before.status})", before.predictions[0])
    lines.append(f"  rerun: {printable(_rerun_of(item), keep='')}")
    return "\n".join(lines)


def _rerun_of(item: pytest.Item) -> str:
    """Return the command that reruns ``item``; a cache holds each file's part of the command."""
    path = item.parent.nodeid if item.parent is not None else ""
    made = item.config.stash.setdefault(_RERUN_PARTS, {})
    if path not in made:
        made[path] = rerun_parts(rerun_facts(item.config), path)
    return with_item(made[path], item.name)


def _answer(result: ExampleResult, number: int) -> list[str]:
    answer, predictions, rule = result.answer, result.outcome.predictions, result.question.post_process
    outputs, thoughts = answer.outputs, answer.thoughts
    which = f" {number + 1} of {len(outputs)}" if len(outputs) > 1 else ""
    lines = []
    if number < len(thoughts) and thoughts[number]:
        lines.append(_folded(f"thoughts{which}", thoughts[number]))
    if outputs and not answer.exchanges:
        lines += _block(f"output{which}", outputs[number])
    if predictions and not answer.exchanges and predictions != outputs:
        lines += _block(f"prediction{which} ({rule})", predictions[number])
    if answer.cut_off:
        lines.append("  cut off: an output reached the token limit, or its thoughts did not end")
    if result.outcome.unparsed:
        no_answer = thoughts and not outputs[number]
        missing = "there is no answer" if no_answer else f"{rule} found nothing to extract"
        lines.append(f"  unparsed: {missing}")
    return lines


def _details(result: ExampleResult, number: int) -> list[str]:
    found = details_of(result)
    own = found[number] if number < len(found) else {}
    turns = [turn for turn in own.get("turns", ()) if isinstance(turn, Mapping)]
    thoughts = _thoughts_of(result, number)
    lines = [line for place, turn in enumerate(turns, start=1) for line in _turn(place, turn, thoughts)]
    elsewhere = {"turns", "repeats"} if turns else set()
    elsewhere |= _OF_FUNCTIONS if is_function(result) else {"steps", FUNCTION, THRESHOLDS}
    if "reason" in result.details or CHECKS in result.details:
        elsewhere.add("judge")
    if "ended" in own and turns:
        # The turns already show the simulated user's messages.
        elsewhere.add("user")
    if expected_in(result.metric, result.details):
        elsewhere.add("expected")
    for name, value in result.details.items():
        if name not in elsewhere:
            lines += _shown(printable(name, keep=""), _shown_detail(value))
    return lines + (_function_lines(result) if is_function(result) else [])


def _function_lines(result: ExampleResult) -> list[str]:
    from pytest_lmeval.functions.steps import last_steps

    output = shown_output(result)
    scores = scores_text(result)
    steps = "\n".join(last_steps(result.details))
    answered = _block("output", output) if output else []
    lines = [*answered, *(_shown("scores", scores) if scores else [])]
    if reasons := reasons_of(result):
        lines += _block("judged", reasons)
    return [*lines, *(_shown("last steps", steps) if steps else [])]


def _verdict(result: ExampleResult) -> str:
    question, outcome = result.question, result.outcome
    name = printable(f"{question.task}: {question.id}", keep="")
    if outcome.score is None:
        error = printable(outcome.error).replace("\n", _MARK)
        return f"{name} could not be scored ({outcome.status}): {error}"
    metric = printable(question.metric, keep="")
    # Each check has its own threshold, but the mean of the checks has no threshold.
    under = responses_under(result) if outcome.threshold else ""
    others = [f"{under} responses under it"] if under else []
    decisive = THRESHOLDS in outcome.details or PASSES in outcome.details
    others += map(printable, missed_lines(result)) if decisive else ()
    least = f", threshold {outcome.threshold:.4g}" if outcome.threshold or not others else ""
    return "; ".join([f"{name} scored {beside(outcome.score, outcome.threshold, '.4g')}{least} ({metric})", *others])


def _thoughts_of(result: ExampleResult, number: int) -> Iterator[str]:
    """Yield the thoughts before each answer in an example's conversation ``number``."""
    before = [turn for details in details_of(result)[:number] for turn in details.get("turns", ())]
    answers = sum(_is_answer(entry) for turn in before for entry in turn.get("said", ()))
    return iter([str(each.get("thoughts", "")) for each in result.exchanges[answers:]])


def _is_answer(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("role") == "assistant"


def _turn(place: int, turn: Mapping[str, Any], thoughts: Iterator[str]) -> list[str]:
    passed, details = turn.get("passed"), turn.get("details") or {}
    calls = expected_in(str(turn.get("metric")), details)
    verdict = "not scored" if passed is None else f"{'passed' if passed else 'FAILED'} ({turn.get('metric')})"
    lines = [f"user: {turn.get('user')}"]
    for entry in turn.get("said", ()):
        if _is_answer(entry) and (thought := next(thoughts, "")):
            lines.append(_folded("thoughts", thought).strip())
        lines.append(_message(entry))
    if passed is False:
        lines += [f"targets: {' | '.join(map(repr, turn['targets']))}"] if turn.get("targets") else []
        lines += [f"expected calls: {', '.join(calls)}"] if calls else []
        lines += [f"{name}: {value}" for name, value in details.items() if not (calls and name == "expected")]
    lines += [str(turn["stopped"])] if turn.get("stopped") else []
    text = "\n".join(_cut(each, 0) for each in lines)
    return _shown(f"turn {place}, {printable(verdict, keep='')}", text)


def _message(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    calls = [f"{call.get('name')}({json.dumps(call.get('arguments'))})" for call in entry.get("calls", ())]
    return f"{entry.get('role')}: {' '.join(filter(None, [str(entry.get('content')), *calls]))}"


def _folded(label: str, text: str) -> str:
    end = printable(" ".join(text[-4 * _THOUGHTS_TAIL :].split()), keep="")[-_THOUGHTS_TAIL:]
    return f"  {label}: {len(text):,} characters, not scored; they end: {end}"


def _shown_detail(value: Any) -> str:
    """Format a detail for readers: put each object in a list on its own line, and omit keys meant for programs."""
    if isinstance(value, Mapping):
        inside = ((name, _shown_detail(inner)) for name, inner in value.items() if name not in _FOR_PROGRAMS)
        return "; ".join(f"{name}: {inner}" for name, inner in inside if inner)
    if isinstance(value, list):
        apart = "\n" if any(isinstance(each, Mapping) for each in value) else ", "
        return apart.join(map(_shown_detail, value))
    return "" if value is None else str(value)


def _block(label: str, text: str, tail: int = 0) -> list[str]:
    return _shown(label, _cut(text, tail))


def _shown(label: str, text: str) -> list[str]:
    shown = printable(text)
    if "\n" not in shown:
        return [f"  {label}: {shown}" if shown else f"  {label}: (empty)"]
    # Indent model output, so that no line of it looks like a line from the plugin.
    return [f"  {label}:{_MARK}" + shown.replace("\n", _MARK)]


def _cut(text: str, tail: int) -> str:
    if tail:
        return text if len(text) <= tail else f"[{len(text) - tail:,} characters before] {text[-tail:]}"
    return text if len(text) <= _TEXT_HEAD else f"{text[:_TEXT_HEAD]} [{len(text) - _TEXT_HEAD:,} more characters]"
