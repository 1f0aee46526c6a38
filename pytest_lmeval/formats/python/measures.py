"""Turn the metrics that a task class lists into functions and questions to judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pytest_lmeval.errors import AdapterError, LmevalError, RecordRefused, ScoringError
from pytest_lmeval.formats.loglikelihood import Rule
from pytest_lmeval.judging.question import Question, consult, judge_of
from pytest_lmeval.judging.verdicts import Verdict, number_in, one_of
from pytest_lmeval.numbers import total_usage
from pytest_lmeval.postprocess import Extraction, apply_metric
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Tools
from pytest_lmeval.tasks.faults import called, scored
from pytest_lmeval.tasks.judging import JudgedAnswer, LLMJudgeScore
from pytest_lmeval.tasks.scores import NamedMetrics
from pytest_lmeval.types import Generate, Message, Metric, Score


@dataclass(frozen=True, slots=True)
class Scored:
    """A prediction, the metrics' other inputs, and the names of the task and the example.

    ``raw`` is the text before post-processing.
    """

    prediction: str
    targets: Sequence[str]
    extras: Mapping[str, Any]
    messages: Sequence[Message] = ()
    task: str = ""
    example: str = ""
    raw: str = ""


def _check_judge(field: str, metric: LLMJudgeScore) -> None:
    if not metric.LABELS and not metric.SCORE_MIN < metric.SCORE_MAX:
        raise RecordRefused("bad_value", field, f"{metric.NAME}: expected SCORE_MIN below SCORE_MAX, or LABELS")
    outside = next((label for label, worth in metric.LABELS.items() if not 0 <= worth <= 1), None)
    if outside is not None:
        raise RecordRefused("bad_value", field, f"{metric.NAME}: LABELS[{outside!r}]: expected a number in [0, 1]")


def judged_answer(answer: Scored) -> JudgedAnswer:
    """Return the argument for metrics that need more than the prediction."""
    asked = [message.content for message in answer.messages if message.role == "user"]
    last = asked[-1] if asked else ""
    return JudgedAnswer(last, answer.prediction, answer.targets, answer.extras, tuple(answer.messages), answer.raw)


def question(metric: LLMJudgeScore, answer: Scored) -> Question:
    """Return the question that ``metric`` asks about ``answer``; raise ScoringError if the metric cannot write it."""
    name = f"metric {metric.NAME!r}"
    text = scored(name, metric.prompt, judged_answer(answer))
    if not isinstance(text, str) or not text:
        raise ScoringError(f"{name}: its prompt returned {text!r:.80}; expected text")
    system = (Message("system", metric.SYSTEM_PROMPT),) if metric.SYSTEM_PROMPT else ()
    by = one_of(list(metric.LABELS)) if metric.LABELS else number_in(metric.SCORE_MIN, metric.SCORE_MAX)
    form = f"Reply with {metric.reply}, and with nothing else."
    verdict = Verdict(form, by.wanted, lambda reply: scored(name, metric.read, reply), "score")
    return Question(
        asker=metric.NAME,
        verdict=verdict,
        opening=(*system, Message("user", text)),
        make=partial(Generate, task=answer.task, id=answer.example, max_tokens=metric.MAX_TOKENS),
        prompt_hash=metric.prompt_hash,
    )


def judged(metric: LLMJudgeScore, answer: Scored, tools: Tools) -> Score:
    """Return the judge's score; raise ScoringError if neither of its two replies can be read."""
    try:
        reply = consult(judge_of(tools.judge, metric.MODEL_KEY), question(metric, answer))
    except AdapterError as error:
        raise type(error)(f"metric {metric.NAME!r}: {error}") from None
    if reply.unread:
        raise ScoringError(f"metric {metric.NAME!r}: {reply.unread}")
    return Score(reply.verdict, {"judge": [dict(entry) for entry in reply.entries]}, usage=reply.usage)


BY_LOGLIKELIHOOD: Mapping[str, Rule] = MappingProxyType(
    {"accuracy_loglikelihood": "total", "accuracy_norm_loglikelihood": "characters"}
)
"""The metrics that score the most probable continuation, each with the rule that compares continuations."""

BYTE_PROBABILITY = "byte_probability"
"""The metric that is the probability per byte of the right continuation."""

_Applies = Callable[[Sequence[str], Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of a task.

    ``check`` raises RecordRefused for a context that the metric cannot score. If ``judge`` is set, a judge gives the
    score. ``of_loglikelihoods`` scores the log-probabilities of all completions. ``of_answer`` scores a
    ``JudgedAnswer``, or returns None. If ``compares`` is true, an item's most probable sample decides the score.
    """

    metric: Metric
    applies: _Applies = field(default=lambda targets, extras: True)
    check: Callable[[Mapping[str, Any]], None] = field(default=lambda extras: None)
    judge: LLMJudgeScore | None = None
    of_loglikelihoods: Callable[[Mapping[str, float], Sequence[str]], float] | None = None
    of_answer: Callable[[JudgedAnswer], float | None] | None = None
    compares: bool = False

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.metric.name


def resolve(metrics: object, registry: Registry) -> tuple[Measure, ...]:
    """Return the metrics in ``METRICS``: names, classes or functions; raise RecordRefused for other values."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise RecordRefused("bad_type", "METRICS", f"expected a list of at least one metric, got {metrics!r:.80}")
    measures = [
        each for number, entry in enumerate(metrics) for each in _measures(f"METRICS[{number}]", entry, registry)
    ]
    names = [measure.name for measure in measures]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RecordRefused("bad_value", "METRICS", f"the metric {twice!r} is listed twice")
    return tuple(measures)


def measured(measures: Sequence[Measure], answer: Scored, tools: Tools) -> Score:
    """Return the score of the first measure that applies; any other measures that apply give additional metrics.

    The details and the usage include all judges.
    """
    applying = [measure for measure in measures if measure.applies(answer.targets, answer.extras)]
    first, *others = [(measure, _score(measure, answer, tools)) for measure in applying]
    if first[1] is None:
        raise ScoringError(f"metric {first[0].name!r} has no value for this answer; list another one first")
    found = {measure.name: score for measure, score in others if score is not None}
    asked = [score for measure, score in (first, *others) if measure.judge is not None and score is not None]
    judges = {"judge": [entry for score in asked for entry in score.details["judge"]]} if asked else {}
    return replace(
        first[1],
        details={**first[1].details, **judges},
        prediction=answer.prediction,
        metrics={**first[1].metrics, **{name: score.value for name, score in found.items()}},
        usage=total_usage(score.usage for score in (first[1], *found.values())),
    )


def _score(measure: Measure, answer: Scored, tools: Tools) -> Score | None:
    if measure.judge is not None:
        return judged(measure.judge, answer, tools)
    if measure.of_answer is not None:
        number = scored(f"metric {measure.name!r}", measure.of_answer, judged_answer(answer))
        return None if number is None else Score(number)
    given = (Extraction(answer.prediction, True), answer.targets, answer.extras)
    return scored(f"metric {measure.name!r}", apply_metric, measure.metric, *given, tools.sandbox)


def _measures(field: str, entry: Any, registry: Registry) -> list[Measure]:
    if isinstance(entry, str):
        return [_registered(field, entry, registry)]
    if isinstance(entry, type) and issubclass(entry, NamedMetrics):
        return [
            replace(_registered(field, name, registry), applies=partial(entry.applies, name)) for name in entry.NAMES
        ]
    metric = called(field, entry) if isinstance(entry, type) else entry
    if isinstance(metric, LLMJudgeScore):
        _check_judge(field, metric)
        return [Measure(Metric(metric.NAME, _by_judge, float(metric.THRESHOLD)), judge=metric)]
    if parts := getattr(metric, "PARTS", ()):
        return [each for part in parts for each in _measures(field, part, registry)]
    of_loglikelihoods, of_answer = getattr(metric, "of_loglikelihoods", None), getattr(metric, "of_answer", None)
    compares = bool(getattr(metric, "COMPARES_SAMPLES", False))
    if not callable(metric) and not (of_loglikelihoods or of_answer or compares):
        wanted = "a metric's name, a class of metrics, or a function (prediction, targets, extras)"
        raise RecordRefused("bad_type", field, f"expected {wanted}, got {entry!r:.80}")
    name = getattr(metric, "NAME", None) or getattr(metric, "__name__", None) or type(metric).__name__
    check = getattr(metric, "check", None)
    declared = Metric(
        str(name),
        metric if callable(metric) else _by_loglikelihood,
        float(getattr(metric, "THRESHOLD", 1.0)),
        bool(getattr(metric, "NEEDS_SANDBOX", False)),
        package=str(getattr(metric, "PACKAGE", "")),
        install=str(getattr(metric, "INSTALL", "")),
    )
    return [
        Measure(
            declared,
            check=check if callable(check) else lambda extras: None,
            of_loglikelihoods=of_loglikelihoods,
            of_answer=of_answer,
            compares=compares,
        )
    ]


def _registered(field: str, name: str, registry: Registry) -> Measure:
    if name in BY_LOGLIKELIHOOD:
        return Measure(Metric(name, _by_loglikelihood))
    if name == BYTE_PROBABILITY:
        return Measure(Metric(name, _by_loglikelihood, threshold=0.0))
    try:
        metric = registry.metric(name)
    except LmevalError as error:
        raise RecordRefused("bad_value", field, str(error)) from None
    if metric.asks_judge:
        detail = f"{name} is for records, YAML tasks and eval functions; here a judge is a subclass of LLMJudgeScore"
        raise RecordRefused("bad_value", field, detail)
    return Measure(metric)


def _by_judge(*_: Any) -> float:
    raise ScoringError("a judge is asked for this metric")


def _by_loglikelihood(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the chosen continuation is right, else 0.0; the caller compares the probabilities."""
    return float(prediction in targets)
