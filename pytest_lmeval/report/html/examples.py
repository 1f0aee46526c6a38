"""Turn one example into fields for the page, with short keys and without empty or repeated values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import METRIC, OUTPUT
from pytest_lmeval.leaderboard.passing import PASSES, missed, reaches, thresholds_of
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.text import LONGEST_SHOWN, cut, item_name, node_name
from pytest_lmeval.types import UNSCORED, ExampleResult, Message

Flip = Literal["worse", "better", ""]
Flips = Mapping[tuple[str, str], Flip]


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A result, the baseline's result of the same example if it exists, and the direction of the flip.

    ``by_id`` is True if the comparison pairs results with different prompts.
    """

    now: ExampleResult
    before: ExampleResult | None = None
    flip: Flip = ""
    by_id: bool = False

    @property
    def differs_in_prompt(self) -> bool:
        """True if the results form a pair and their prompts differ."""
        before, now = self.before, self.now
        if before is None or not self.by_id:
            return False
        return before.hash != now.hash and before.scoring_hash == now.scoring_hash


class PromptStart(NamedTuple):
    """The text and the messages with which all prompts of a task begin."""

    text: str = ""
    messages: tuple[Message, ...] = ()


NO_START = PromptStart()


def flips_of(
    results: Iterable[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> Flips:
    """Return the examples that got worse or better: by the comparison, or else by the baseline's results."""
    if comparison is not None:
        return {**_named(comparison, "better"), **_named(comparison, "worse")}
    if not baseline:
        return {}
    pairs = {(result.task, result.id): result for result in results}
    return {key: flip for key, now in pairs.items() if key in baseline and (flip := _flip(now, baseline[key]))}


def before_of(
    results: Iterable[ExampleResult],
    comparison: Mapping[str, Any] | None,
    baseline: Mapping[tuple[str, str], ExampleResult],
) -> dict[tuple[str, str], ExampleResult]:
    """Return the baseline's results; add results that the comparison recorded for further flipped examples."""
    flipped = [*(comparison or {}).get("worse", ()), *(comparison or {}).get("better", ())]
    recorded = {(entry["task"], entry["id"]): entry for entry in flipped if entry.get("old")}
    known = {key: now for now in results if (key := (now.task, now.id)) in recorded} if recorded else {}
    return {**{key: _as_it_was(now, recorded[key]) for key, now in known.items()}, **baseline}


def urgency(result: ExampleResult, flip: Flip) -> int:
    """Return the rank of an example; if the page has no room for all, it embeds the lowest ranks first."""
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


def example_fields(pair: ShownPair, start: PromptStart = NO_START) -> dict[str, Any]:
    """Return the fields of an example for the page, without empty ones.

    They leave out the ``start`` that the prompts of its task share.
    """
    now = pair.now
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
        "answers": _answers(now),
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
        "flip": pair.flip,
        "before": None if pair.before is None else _before(now, pair.before, other_prompt=pair.differs_in_prompt),
    }
    if question.metric == METRIC and _is_function(now):
        from pytest_lmeval.report.html.steps import function_fields

        fields.update(function_fields(now))
    return _filled(fields)


def page_messages(messages: Sequence[Message]) -> Sequence[object]:
    """Return the messages of a prompt as JSON, cut like other texts of the page."""
    from pytest_lmeval.report.html.messages import shown_messages

    return shown_messages(messages)


def _thoughts(exchanges: Iterable[Mapping[str, Any]]) -> list[str]:
    thoughts = [cut(str(each.get("thoughts", ""))) for each in exchanges]
    return thoughts if any(thoughts) else []


def _wanted(result: ExampleResult) -> Sequence[str]:
    if _is_function(result):
        return ()
    from pytest_lmeval.leaderboard.explained import wanted_of

    return wanted_of(result)


def _item(result: ExampleResult) -> str:
    """Return the name of a result's item as a command needs it; "" if it equals the id."""
    question = result.question
    name = node_name(question.item) if question.item else item_name(question.id)
    return "" if name == question.id else name


def _before(now: ExampleResult, before: ExampleResult, *, other_prompt: bool) -> dict[str, Any]:
    same = before.outputs == now.outputs != ()
    # Scores for different prompts or targets are not compared; the texts are still shown.
    fields = {
        "status": before.status,
        "score": before.score,
        "changed": before.hash != now.hash and not other_prompt,
        "other_prompt": other_prompt,
        "prompt": cut(before.prompt) if other_prompt else "",
        "messages": page_messages(before.messages) if other_prompt and before.messages else [],
        "same": same,
        "answers": [] if same else _answers(before),
    }
    return _filled(fields | (_answered_before(before, now) if _is_function(now) else {}))


def _answered_before(before: ExampleResult, now: ExampleResult) -> dict[str, Any]:
    from pytest_lmeval.leaderboard.asked import answered
    from pytest_lmeval.leaderboard.explained import explanation_of

    old, new = answered(before), answered(now)
    if not old:
        return {"explained": cut(explanation_of(before))}
    said = {"same": True} if old == new else {"answers": [{"output": cut(old)}], "now": cut(new)}
    return {"same": False, "answers": [], **said, "explained": cut(explanation_of(before))}


def _answers(result: ExampleResult) -> list[dict[str, Any]]:
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


def _as_it_was(now: ExampleResult, entry: Mapping[str, Any]) -> ExampleResult:
    recorded = entry["old"]
    output, prediction = recorded.get("output"), recorded.get("prediction")
    if _is_function(now):
        # Its recorded prediction is the reason of the score.
        said = {OUTPUT: output, "reason": prediction}
        return replace(now, status=recorded["status"], score=recorded["score"], details=said, metrics={})
    if "old_prompt" in entry:
        messages = tuple(map(Message.from_json, entry.get("old_messages", ())))
        now = replace(now, prompt=entry["old_prompt"], messages=messages, hash="")
    return replace(
        now,
        status=recorded["status"],
        score=recorded["score"],
        outputs=() if output is None else (output,),
        predictions=() if prediction is None else (prediction,),
    )


def _named(comparison: Mapping[str, Any], flip: Flip) -> dict[tuple[str, str], Flip]:
    return {(entry["task"], entry["id"]): flip for entry in comparison.get(flip, ())}


def _flip(now: ExampleResult, before: ExampleResult) -> Flip:
    if now.score is None or before.score is None or now.hash != before.hash:
        return ""
    if PASSES in now.details or PASSES in before.details:
        was, is_now = reaches(before), reaches(now)
    else:
        # By today's threshold on both sides: a threshold that was raised is no change of the model.
        named = thresholds_of(now)
        was = is_at_least(before.score, now.threshold) and not missed(before.metrics, named)
        is_now = is_at_least(now.score, now.threshold) and not missed(now.metrics, named)
    return "" if was == is_now else "worse" if was else "better"


def _is_function(result: ExampleResult) -> bool:
    """Return True for the result of an eval function, even if its code is not known."""
    return result.metric == METRIC and not result.outputs


def _filled(fields: Mapping[str, Any]) -> dict[str, Any]:
    # The number 0 is a value.
    return {name: value for name, value in fields.items() if value or (value == 0 and value is not False)}


def extracted_span(output: str, prediction: str) -> tuple[int, int] | None:
    """Return start and end, in UTF-16 units, of the prediction in the output.

    Return None if the output contains it in several places, does not contain it, or equals it except for blanks.
    """
    if not prediction or output.strip() == prediction.strip() or output.count(prediction) != 1:
        return None
    before = output[: output.index(prediction)]
    start, size = (len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in (before, prediction))
    return start, start + size
