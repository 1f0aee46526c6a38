"""Metrics of a task class that ask a judge: the question, and the score that its answer makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import AdapterError, RecordRefused, ScoringError
from pytest_lmeval.formats.judged import Question, consult, judge_of
from pytest_lmeval.task import Tools
from pytest_lmeval.tasks.faults import scored
from pytest_lmeval.tasks.judging import JudgedAnswer, LLMJudgeScore
from pytest_lmeval.types import Generate, Message, Score


@dataclass(frozen=True, slots=True)
class Scored:
    """What is scored: a prediction, and what a metric may want to know besides; of which task and example.

    ``raw`` is the text that the prediction was made of.
    """

    prediction: str
    targets: Sequence[str]
    extras: Mapping[str, Any]
    messages: Sequence[Message] = ()
    task: str = ""
    example: str = ""
    raw: str = ""


def check_judge(field: str, metric: LLMJudgeScore) -> None:
    """Raise RecordRefused where a metric says neither labels that are worth a score nor a range of numbers."""
    if not metric.LABELS and not metric.SCORE_MIN < metric.SCORE_MAX:
        raise RecordRefused("bad_value", field, f"{metric.NAME}: expected SCORE_MIN below SCORE_MAX, or LABELS")
    outside = next((label for label, worth in metric.LABELS.items() if not 0 <= worth <= 1), None)
    if outside is not None:
        raise RecordRefused("bad_value", field, f"{metric.NAME}: LABELS[{outside!r}]: expected a number in [0, 1]")


def judged_answer(answer: Scored) -> JudgedAnswer:
    """Return the argument of a metric that looks at more than the prediction."""
    asked = [message.content for message in answer.messages if message.role == "user"]
    last = asked[-1] if asked else ""
    return JudgedAnswer(last, answer.prediction, answer.targets, answer.extras, tuple(answer.messages), answer.raw)


def question(metric: LLMJudgeScore, answer: Scored) -> Question:
    """Return what the judge of ``metric`` is asked about ``answer``; raise ScoringError where the metric fails."""
    name = f"metric {metric.NAME!r}"
    text = scored(name, metric.prompt, judged_answer(answer))
    if not isinstance(text, str) or not text:
        raise ScoringError(f"{name}: its prompt returned {text!r:.80}; expected text")
    system = (Message("system", metric.SYSTEM_PROMPT),) if metric.SYSTEM_PROMPT else ()
    return Question(
        asker=metric.NAME,
        opening=(*system, Message("user", text)),
        request=lambda messages: Generate(messages, answer.task, answer.example, max_tokens=metric.MAX_TOKENS),
        read=lambda reply: scored(name, metric.read, reply),
        repair=lambda: f"Your reply cannot be read. Reply with {metric.reply}, and with nothing else.",
        verdict="score",
        wanted=_wanted(metric),
        prompt_hash=metric.prompt_hash,
    )


def _wanted(metric: LLMJudgeScore) -> str:
    if metric.LABELS:
        return f"label out of {', '.join(metric.LABELS)}"
    return f"number from {metric.SCORE_MIN:g} to {metric.SCORE_MAX:g}"


def judged(metric: LLMJudgeScore, answer: Scored, tools: Tools) -> Score:
    """Return the score that the judge gives; raise ScoringError for a reply that cannot be read twice."""
    try:
        said = consult(judge_of(tools.judge, metric.MODEL_KEY), question(metric, answer))
    except AdapterError as error:
        raise type(error)(f"metric {metric.NAME!r}: {error}") from None
    if said.unread:
        raise ScoringError(f"metric {metric.NAME!r}: {said.unread}")
    return Score(said.verdict, {"judge": [dict(entry) for entry in said.entries]}, usage=said.usage)
