"""Score one example's responses, and build the result."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import Any

from pytest_lmeval.errors import AdapterTimeout, LmevalError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.hashes import NOTHING_ASKED, hashes_of, rendered, request_hash
from pytest_lmeval.leaderboard.passing import PASSES, THRESHOLDS, missed
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.postprocess import share_of
from pytest_lmeval.records.answers import exchange_record
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least, mean
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.types import (
    COST_UNKNOWN,
    NOTHING,
    Completion,
    Example,
    ExampleAnswer,
    ExampleOutcome,
    ExampleQuestion,
    ExampleResult,
    Exchange,
    Generate,
    Request,
    Response,
    Score,
    Status,
)

_NO_QUARANTINE = Quarantine(listed={})
_PREDICTION, _UNPARSED, _VALUE = map(attrgetter, ("prediction", "unparsed", "value"))
_IS_CUT_OFF = attrgetter("is_cut_off")
# ``json.dumps`` would create an encoder for each score.
_ENCODER = json.JSONEncoder(allow_nan=False)
_MIXED = "some of its responses have a score and others have none; set score_field"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Decides the score that an example must reach: an override, its own threshold, or its metric's threshold.

    Both ``overrides`` and ``defaults`` map names of tasks and metrics to thresholds; ``overrides`` take precedence.
    """

    registry: Registry
    overrides: Mapping[str, float] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)

    def of(self, task: Task, example: Example) -> float:
        """Return an example's threshold, in [0, 1]."""
        name = task.metric_name(example)
        for overrides in filter(None, (self.overrides, self.defaults)):
            for override in (task.name, example.metric, name):
                if override in overrides:
                    return overrides[override]
        own = task.threshold(example)
        return self.registry.metric(name).threshold if own is None else own


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """Scoring rules shared by all examples in a run.

    The status of an example below its threshold is ``failed`` if ``gated`` is true, otherwise ``below``. An example
    that must pass fails even if ``gated`` is false, unless ``must_pass_binds`` is False. Examples in ``quarantine``
    never fail. ``repeats`` applies to examples that do not set the number of repeats. An example's responses form one
    group per repeat, and its score is the mean over the groups.
    """

    thresholds: Thresholds
    tools: Tools = field(default_factory=Tools)
    gated: bool = True
    adapter: str = ""
    repeats: int = 1
    must_pass_binds: bool = True
    quarantine: Quarantine = _NO_QUARANTINE
    adapter_key: str = ""


def evaluate(
    task: Task,
    example: Example,
    question: ExampleQuestion,
    responses: Sequence[Response],
    rules: ScoringRules,
    score: Callable[[Example, Sequence[Response], Tools], Score] | None = None,
) -> ExampleResult:
    """Return the result of ``example``; if a metric fails, the status is ``error`` and the score is missing.

    ``question`` comes from :func:`question_of`. If scoring has started early, ``score`` replaces the task's method.
    """
    threshold = rules.thresholds.of(task, example)
    score = score or task.score
    scores: Sequence[Score] = ()
    value = None
    try:
        repeats = example.policy.repeats or rules.repeats
        groups = [responses] if repeats == 1 else answer_groups(responses, repeats)
        scores = [_checked(_with_facts(score(example, group, rules.tools), group), example.metric) for group in groups]
    except LmevalError as error:
        status, problem = _status_of(error), str(error)
    except Exception as error:
        status, problem = "error", f"metric {example.metric!r} raised {type(error).__name__}: {error}"
    else:
        status, value, problem = _outcome(example, scores, threshold, rules)
        scores = () if status == "error" else scores
    answer = _answer(responses, scores, rules, known=example.targets)
    outcome = _example_outcome(example, scores, (status, value, problem), threshold, answer.outputs)
    if example.policy.passes is not None and value is not None:
        counted = {"needed": example.policy.passes, "passed": passed_repeats(scores, threshold)}
        outcome = replace(outcome, details={**outcome.details, PASSES: counted})
    return _result(question, answer, outcome, rules)


def passed_repeats(scores: Sequence[Score], threshold: float) -> int:
    """Return the number of repeats that reach the threshold and the thresholds of further scores."""
    return sum(is_at_least(each.value, threshold) and not missed(each.metrics, each.thresholds) for each in scores)


def failed_result(
    task: Task, example: Example, question: ExampleQuestion, error: LmevalError, rules: ScoringRules
) -> ExampleResult:
    """Return the result, with the status ``error`` or ``timeout``, of an example without a response."""
    threshold = rules.thresholds.of(task, example)
    outcome = _example_outcome(example, (), (_status_of(error), None, str(error)), threshold, ())
    answer = _answer((), (), rules, error.exchanges)
    if retries := getattr(error, "retries", 0):
        answer = replace(answer, usage={**answer.usage, "retries": retries})
    return _result(question, answer, outcome, rules)


def runs_code(task: Task, example: Example, registry: Registry) -> bool:
    """Return True if scoring the example runs code written by the model."""
    named = map(registry.metrics.get, (task.metric_name(example), *task.further_metrics(example)))
    return any(metric is not None and metric.needs_sandbox for metric in named)


def hashes(task: Task, example: Example, prompt: Prompt) -> tuple[str, str]:
    """Return an example's content hash and its scoring hash.

    The content hash covers everything that determines the score, except the model. The scoring hash also excludes the
    prompt.
    """
    parts = (example.targets, task.metric_name(example), example.post_process)
    asked = prompt if isinstance(prompt, str) else rendered(prompt)
    content, scored = hashes_of(asked, *parts, task.scoring(example))
    own = task.unprompted(example)
    return content, scored if own is None else hashes_of(asked, *parts, own)[1]


def _status_of(error: LmevalError) -> Status:
    return "timeout" if isinstance(error, AdapterTimeout) else "error"


def _outcome(
    example: Example, scores: Sequence[Score], threshold: float, rules: ScoringRules
) -> tuple[Status, float | None, str]:
    """Return an example's status, its score (or None), and the reason why the score is missing (or "")."""
    measured = 0
    for each in scores:
        if each.excluded:
            return "excluded", None, each.excluded
        measured += each.measured
    if measured:
        return ("measured", None, "") if measured == len(scores) else ("error", None, _MIXED)
    value = mean([*map(_VALUE, scores)])
    named = scores[0].thresholds
    policy = example.policy
    if policy.passes is not None:
        is_passed = passed_repeats(scores, threshold) >= policy.passes
    else:
        is_passed = is_at_least(value, threshold) and not (named and missed(_metrics(scores), named))
    if is_passed:
        return "passed", value, ""
    decisive = rules.gated or (rules.must_pass_binds and policy.must_pass)
    return "failed" if decisive else "below", value, ""


def question_of(
    task: Task, example: Example, prompt: Prompt, requests: Sequence[Request] | None = None, item: str = ""
) -> ExampleQuestion:
    """Return an example's question; ``requests`` are the requests for one response, if the caller has them.

    ``item`` is the name of the test item, or "" if the name follows from the example's id.
    """
    content, scored = hashes(task, example, prompt)
    asked = task.requests(example, prompt) if requests is None else requests
    # The role of a user's only message need not be recorded, unless the message has media.
    is_plain = isinstance(prompt, str) or (len(prompt) == 1 and prompt[0].role == "user" and not prompt[0].parts)
    return ExampleQuestion(
        task=task.name,
        id=example.id,
        metric=example.metric,
        hash=content,
        prompt=prompt if isinstance(prompt, str) else Generate(prompt).text,
        targets=example.targets,
        post_process=example.post_process,
        category=example.category,
        request=request_hash(asked) if asked else NOTHING_ASKED,
        cluster=example.policy.cluster,
        must_pass=example.policy.must_pass,
        line=example.line,
        item=item,
        scoring_hash=scored,
        place=example.place,
        tags=example.policy.tags,
        messages=() if is_plain or isinstance(prompt, str) else prompt,
    )


def _answer(
    responses: Sequence[Response],
    scores: Sequence[Score],
    rules: ScoringRules,
    asked_before: Sequence[Exchange] = (),
    known: tuple[str, ...] = (),
) -> ExampleAnswer:
    if not (responses or asked_before):
        # Eval functions send requests themselves.
        return ExampleAnswer(adapter=rules.adapter, usage=_usage((), scores), adapter_key=rules.adapter_key)
    completions = [response for response in responses if isinstance(response, Completion)]
    exchanges = [*asked_before, *(exchange for completion in completions for exchange in completion.exchanges)]
    # Most responses take one request each.
    single = responses
    if exchanges:
        plain = [one for one in responses if not (isinstance(one, Completion) and one.exchanges)]
        single = [*(one.response for one in exchanges), *plain]
    fresh = [response for response in single if not response.cached]
    times = [round(response.latency_ms, 3) for response in fresh if response.latency_ms is not None]
    firsts = [round(one.ttft_ms, 3) for one in fresh if isinstance(one, Completion) and one.ttft_ms is not None]
    thoughts = tuple([completion.thoughts for completion in completions])
    outputs = tuple([completion.output for completion in completions])
    return ExampleAnswer(
        # A right answer often equals the target: store the string once.
        outputs=known if outputs == known else outputs,
        cut_off=any(map(_IS_CUT_OFF, completions)),
        latency_ms=round(sum(times) / len(times), 3) if times else None,
        adapter=rules.adapter,
        usage=_usage(single, scores),
        thoughts=thoughts if any(thoughts) else (),
        exchanges=tuple(map(exchange_record, exchanges)) if exchanges else (),
        request_ms=tuple(times) if len(times) > 1 else (),
        ttft_ms=tuple(firsts),
        cached=len(single) - len(fresh),
        served_by=dict(Counter(name for each in single if (name := getattr(each, "served_by", "")))) or NOTHING,
        adapter_key=rules.adapter_key,
    )


def _example_outcome(
    example: Example,
    scores: Sequence[Score],
    decided: tuple[Status, float | None, str],
    threshold: float,
    outputs: tuple[str, ...],
) -> ExampleOutcome:
    status, score, error = decided
    predictions = tuple(map(_PREDICTION, scores))
    return ExampleOutcome(
        status=status,
        score=score,
        threshold=threshold,
        # The prediction often equals the output: store the string once.
        predictions=outputs if predictions == outputs else predictions,
        unparsed=any(map(_UNPARSED, scores)),
        error=error,
        details=_details(scores, outputs),
        metrics=_metrics(scores),
        quarantine=example.policy.quarantine,
    )


def _result(
    question: ExampleQuestion, answer: ExampleAnswer, outcome: ExampleOutcome, rules: ScoringRules
) -> ExampleResult:
    result = ExampleResult(question=question, answer=answer, outcome=outcome)
    return rules.quarantine.applied(result) if outcome.quarantine or rules.quarantine.listed else result


def answer_groups(responses: Sequence[Response], repeats: int) -> list[Sequence[Response]]:
    """Group the responses by repeat."""
    size = len(responses) // repeats
    return [responses[number * size : (number + 1) * size] for number in range(repeats)]


def _details(scores: Sequence[Score], outputs: Sequence[str]) -> Mapping[str, Any]:
    if not scores:
        return NOTHING
    named = {THRESHOLDS: dict(scores[0].thresholds)} if scores[0].thresholds else {}
    if len(scores) < 2:
        return {**scores[0].details, **named} if named else scores[0].details or NOTHING
    repeats = [dict(score.details) for score in scores]
    details: dict[str, Any] = {**({} if scores[0].measured else _votes(scores, outputs)), **named}
    return {**details, "repeats": repeats} if any(repeats) else details


def _votes(scores: Sequence[Score], outputs: Sequence[str]) -> dict[str, Any]:
    values = [score.value for score in scores]
    if not (outputs or any(map(_PREDICTION, scores))):
        # Eval functions have no predictions.
        return {"scores": values, "majority_score": None}
    votes = Counter(map(_PREDICTION, scores))
    (majority, _), *_ = votes.most_common(1)
    chosen = next(score.value for score in scores if score.prediction == majority)
    return {"scores": values, "majority_score": chosen}


def _metrics(scores: Sequence[Score]) -> Mapping[str, float]:
    names = dict.fromkeys([name for score in scores if score.metrics for name in score.metrics])
    if not names:
        return NOTHING
    return {name: mean([score.metrics[name] for score in scores if name in score.metrics]) for name in names}


def _usage(responses: Sequence[Response], scores: Sequence[Score]) -> Mapping[str, float]:
    usage: dict[str, float] = {}
    unknown = 0
    for score in scores:
        for name in score.usage:
            usage[name] = usage.get(name, 0) + score.usage[name]
    for response in responses:
        for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "retries"):
            amount = getattr(response, name, None)
            if amount is not None:
                usage[name] = usage.get(name, 0) + amount
        unknown += not response.cached and getattr(response, "cost", None) is None
    unknown += int(usage.pop(COST_UNKNOWN, 0))
    if "cost" in usage and unknown:
        usage[COST_UNKNOWN] = unknown
    if "cost" in usage:
        usage["cost"] = round(usage["cost"], 12)  # sums of binary fractions would show 20 digits
    return usage or NOTHING


def _with_facts(score: Score, group: Sequence[Response]) -> Score:
    """Add facts from the responses to the score: whether an answer is missing, and the model's confidence."""
    only = group[0] if len(group) == 1 else None
    if isinstance(only, Completion) and (only.confidence is not None or only.logprobs):
        score = _with_confidence(score, only)
    is_unanswered = any(isinstance(one, Completion) and one.has_no_answer for one in group)
    return replace(score, unparsed=True) if is_unanswered else score


def _with_confidence(score: Score, completion: Completion) -> Score:
    """Add the completion's confidence to the score's details, unless the metric has already set a confidence.

    The confidence is the adapter's, if any; otherwise, it is the text's probability, e to the sum of ``logprobs``.
    """
    if "confidence" in score.details:
        return score
    confidence, logprobs = completion.confidence, completion.logprobs
    numbers = [each for each in logprobs if isinstance(each, int | float) and math.isfinite(each)]
    # A reasoning model's logprobs also cover its thoughts.
    if confidence is None and not completion.thoughts and 0 < len(numbers) == len(logprobs):
        confidence = math.exp(min(0.0, math.fsum(numbers)))
    return score if confidence is None else replace(score, details={**score.details, "confidence": confidence})


def _checked(score: Score, metric: str) -> Score:
    value = 0.0 if score.measured else share_of(score.value, metric)
    metrics = {name: share_of(given, name) for name, given in score.metrics.items()}
    if score.details:
        _ENCODER.encode(score.details)
    return replace(score, value=value, metrics=metrics)
