"""From the responses to one example to its result."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_lmeval.errors import AdapterTimeout, LmevalError
from pytest_lmeval.hashes import hashes_of, rendered, request_hash, scoring_hash_of
from pytest_lmeval.leaderboard.quarantine import Quarantine
from pytest_lmeval.postprocess import share_of
from pytest_lmeval.records.answers import exchange_record
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import mean
from pytest_lmeval.task import Prompt, Task, Tools
from pytest_lmeval.types import (
    COST_UNKNOWN,
    WITHOUT_SCORE,
    Completion,
    Example,
    ExampleResult,
    Exchange,
    Generate,
    Response,
    Score,
    Status,
)

_NO_QUARANTINE = Quarantine(listed={})
_MIXED = "some of its responses have a score and others have none; say score_field"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The score an example must reach: by the task's name, its metric's, the example's own word, or the metric.

    ``defaults`` are overrides too, but every one of ``overrides`` goes before them.
    """

    registry: Registry
    overrides: Mapping[str, float] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)

    def of(self, task: Task, example: Example) -> float:
        """Return the threshold of ``example``, in [0, 1]."""
        name = task.metric_name(example)
        for overrides in filter(None, (self.overrides, self.defaults)):
            for override in (task.name, example.metric, name):
                if override in overrides:
                    return overrides[override]
        own = task.threshold(example)
        return self.registry.metric(name).threshold if own is None else own


@dataclass(frozen=True, slots=True)
class ScoringRules:
    """What turns responses into results, the same for every example of a run.

    ``gated`` tells whether an example under its threshold fails, or is only counted as ``below``; one that must pass
    fails unless ``must_pass_binds`` is False. Examples in ``quarantine`` never fail. ``repeats`` is how often each
    example was asked: the responses come in as many groups, and the score is the mean of theirs.
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
    prompt: Prompt,
    responses: Sequence[Response],
    rules: ScoringRules,
    score: Callable[[Example, Sequence[Response], Tools], Score] | None = None,
) -> ExampleResult:
    """Return the result of ``example``; a metric that fails gives the status ``error`` and no score.

    ``score`` stands in for the task's own method, where that has been at work already.
    """
    threshold = rules.thresholds.of(task, example)
    asked = _Asked(task, example, prompt, threshold, responses)
    score = score or task.score
    try:
        groups = answer_groups(responses, rules.repeats)
        scores = [
            _checked(_with_what_is_known(score(example, group, rules.tools), group), example.metric) for group in groups
        ]
    except LmevalError as error:
        return _result(asked, rules, _status_of(error), error=str(error))
    except Exception as error:
        problem = f"metric {example.metric!r} raised {type(error).__name__}: {error}"
        return _result(asked, rules, "error", error=problem)
    for each in scores:
        if each.excluded:
            return _result(asked, rules, "excluded", scores, error=each.excluded)
    measured = [each for each in scores if each.measured]
    if measured:
        if len(measured) < len(scores):
            return _result(asked, rules, "error", error=_MIXED)
        return _result(asked, rules, "measured", scores)
    reached = mean([each.value for each in scores]) >= threshold
    decisive = rules.gated or (rules.must_pass_binds and _must_pass(example))
    status: Status = "passed" if reached else "failed" if decisive else "below"
    return _result(asked, rules, status, scores)


def failed_result(
    task: Task, example: Example, prompt: Prompt, error: LmevalError, rules: ScoringRules
) -> ExampleResult:
    """Return the result of an example that got no response: ``error``, or ``timeout``."""
    threshold = rules.thresholds.of(task, example)
    asked = _Asked(task, example, prompt, threshold, exchanges=error.exchanges)
    result = _result(asked, rules, _status_of(error), error=str(error))
    retries = getattr(error, "retries", 0)
    return replace(result, usage={**result.usage, "retries": retries}) if retries else result


def runs_code(task: Task, example: Example, registry: Registry) -> bool:
    """Tell whether to score the example is to run what the model wrote."""
    metric = registry.metrics.get(task.metric_name(example))
    return metric is not None and metric.needs_sandbox


def content_hash(task: Task, example: Example, prompt: Prompt) -> str:
    """Return a SHA-256 over everything but the model that decides the example's score."""
    return hashes(task, example, prompt)[0]


def hashes(task: Task, example: Example, prompt: Prompt) -> tuple[str, str]:
    """Return the content hash of an example and its scoring hash: of everything in the first but the prompt."""
    parts = (example.targets, task.metric_name(example), example.post_process)
    content, scored = hashes_of(rendered(prompt), *parts, task.scoring(example))
    own = task.unprompted(example)
    return content, scored if own is None else scoring_hash_of(*parts, own)


@dataclass(frozen=True, slots=True)
class _Asked:
    task: Task
    example: Example
    prompt: Prompt
    threshold: float
    responses: Sequence[Response] = ()
    exchanges: Sequence[Exchange] = ()


def _status_of(error: LmevalError) -> Status:
    return "timeout" if isinstance(error, AdapterTimeout) else "error"


def _result(
    asked: _Asked, rules: ScoringRules, status: Status, scores: Sequence[Score] = (), *, error: str = ""
) -> ExampleResult:
    task, example, prompt = asked.task, asked.example, asked.prompt
    completions = [response for response in asked.responses if isinstance(response, Completion)]
    exchanges = list(asked.exchanges)
    for completion in completions:
        exchanges += completion.exchanges
    # As a rule each response is one request.
    single = [one.response for one in exchanges] + _plain(asked.responses) if exchanges else asked.responses
    fresh = [response for response in single if not response.cached]
    latencies = [round(response.latency_ms, 3) for response in fresh if response.latency_ms is not None]
    thoughts = tuple([completion.thoughts for completion in completions])
    content, scored = hashes(task, example, prompt)
    result = ExampleResult(
        task=task.name,
        id=example.id,
        status=status,
        score=mean([score.value for score in scores]) if scores and status not in WITHOUT_SCORE else None,
        threshold=asked.threshold,
        metric=example.metric,
        hash=content,
        prompt=prompt if isinstance(prompt, str) else Generate(prompt).text,
        outputs=tuple([completion.output for completion in completions]),
        predictions=tuple([score.prediction for score in scores]),
        targets=example.targets,
        post_process=example.post_process,
        category=example.category,
        latency_ms=round(sum(latencies) / len(latencies), 3) if latencies else None,
        unparsed=any(score.unparsed for score in scores),
        error=error,
        adapter=rules.adapter,
        request=request_hash(task.requests(example, prompt)),
        usage=_usage(single, scores),
        details=_details(scores),
        cluster=str(example.metadata.get("cluster", "")),
        must_pass=_must_pass(example),
        line=example.line,
        metrics=_metrics(scores),
        thoughts=thoughts if any(thoughts) else (),
        cut_off=any(completion.is_cut_off for completion in completions),
        exchanges=tuple(map(exchange_record, exchanges)),
        scoring_hash=scored,
        request_ms=tuple(latencies) if len(latencies) > 1 else (),
        ttft_ms=tuple(
            [round(one.ttft_ms, 3) for one in fresh if isinstance(one, Completion) and one.ttft_ms is not None]
        ),
        cached=len(single) - len(fresh),
        served_by=_served_by(single),
        quarantine=_own_quarantine(example),
        adapter_key=rules.adapter_key,
    )
    return rules.quarantine.applied(result) if result.quarantine or rules.quarantine.listed else result


def _served_by(responses: Sequence[Response]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for response in responses:
        if name := getattr(response, "served_by", ""):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _own_quarantine(example: Example) -> Mapping[str, str]:
    own = example.metadata.get("quarantine")
    return own if isinstance(own, Mapping) else {}


def _plain(responses: Sequence[Response]) -> list[Response]:
    """Return the responses that are one request each."""
    return [one for one in responses if not (isinstance(one, Completion) and one.exchanges)]


def _must_pass(example: Example) -> bool:
    return example.metadata.get("must_pass") is True


def answer_groups(responses: Sequence[Response], repeats: int) -> list[Sequence[Response]]:
    """Return the responses of each repeat."""
    if repeats == 1:
        return [responses]
    size = len(responses) // repeats
    return [responses[number * size : (number + 1) * size] for number in range(repeats)]


def _details(scores: Sequence[Score]) -> Mapping[str, Any]:
    if len(scores) < 2:
        return scores[0].details if scores else {}
    repeats = [dict(score.details) for score in scores]
    details: dict[str, Any] = {} if scores[0].measured else _votes(scores)
    return {**details, "repeats": repeats} if any(repeats) else details


def _votes(scores: Sequence[Score]) -> dict[str, Any]:
    votes = Counter(score.prediction for score in scores)
    (majority, _), *_ = votes.most_common(1)
    chosen = next(score.value for score in scores if score.prediction == majority)
    return {"scores": [score.value for score in scores], "majority_score": chosen}


def _metrics(scores: Sequence[Score]) -> dict[str, float]:
    names = dict.fromkeys([name for score in scores if score.metrics for name in score.metrics])
    if not names:
        return {}
    return {name: mean([score.metrics[name] for score in scores if name in score.metrics]) for name in names}


def _usage(responses: Sequence[Response], scores: Sequence[Score]) -> dict[str, float]:
    usage: dict[str, float] = {}
    untold = 0
    for score in scores:
        for name in score.usage:
            usage[name] = usage.get(name, 0) + score.usage[name]
    for response in responses:
        for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "retries"):
            amount = getattr(response, name, None)
            if amount is not None:
                usage[name] = usage.get(name, 0) + amount
        untold += not response.cached and getattr(response, "cost", None) is None
    untold += int(usage.pop(COST_UNKNOWN, 0))
    if "cost" in usage and untold:
        usage[COST_UNKNOWN] = untold
    if "cost" in usage:
        usage["cost"] = round(usage["cost"], 12)  # sums of binary fractions, which would be shown with 20 digits
    return usage


def _with_what_is_known(score: Score, group: Sequence[Response]) -> Score:
    """Return the score with what the responses themselves tell: that there is no answer, and the confidence in it."""
    score = _with_confidence(score, group)
    for one in group:
        if isinstance(one, Completion) and one.has_no_answer:
            return replace(score, unparsed=True)
    return score


def _with_confidence(score: Score, group: Sequence[Response]) -> Score:
    """Return the score with the confidence in its only completion among the details, unless the metric gave one.

    It is the adapter's ``confidence``, else the probability of the text: e to the sum of its ``logprobs``.
    """
    if "confidence" in score.details or len(group) != 1 or not isinstance(group[0], Completion):
        return score
    confidence, logprobs = group[0].confidence, group[0].logprobs
    if confidence is None and not logprobs:
        return score
    numbers = [each for each in logprobs if isinstance(each, int | float) and math.isfinite(each)]
    # Those of a reasoning model are of its thoughts, too.
    if confidence is None and not group[0].thoughts and 0 < len(numbers) == len(logprobs):
        confidence = math.exp(min(0.0, math.fsum(numbers)))
    return score if confidence is None else replace(score, details={**score.details, "confidence": confidence})


def _checked(score: Score, metric: str) -> Score:
    value = 0.0 if score.measured else _share(score.value, metric)
    metrics = {name: _share(given, name) for name, given in score.metrics.items()} if score.metrics else {}
    if score.details:
        json.dumps(score.details, allow_nan=False)
    return score if value is score.value and not metrics else replace(score, value=value, metrics=metrics)


def _share(given: Any, metric: str) -> float:
    return given if type(given) is float and 0.0 <= given <= 1.0 else share_of(given, metric)
