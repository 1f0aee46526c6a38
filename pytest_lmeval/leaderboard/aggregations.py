"""Aggregate a task's results: means, pass@k, centred scores, calibration, and spending."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_lmeval.leaderboard.details import (
    DURATION,
    confidence_of,
    first_details,
    first_score,
    is_function,
    requests_in,
)
from pytest_lmeval.stats.intervals import Values, is_at_least, mean, standard_error
from pytest_lmeval.types import COST_UNKNOWN, ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.rows import TaskRow

Breakdown = Mapping[str, Mapping[str, float | int | None]]
"""Each group's score and number of examples, by name."""
CENTERED = "centered"
"""The centred metric of tasks with a random baseline."""
LEAST = {"p50_ms": 5, "p95_ms": 20, "ttft_p95_ms": 20, "duration_p50_ms": 5, "duration_p95_ms": 20}
"""The minimum number of requests or function calls for each percentile."""
FIELDS = (*LEAST, "requests_per_example", "tokens_per_example", "cost_per_example", "cost")
"""The fields that limits may name."""
_TOKENS = ("prompt_tokens", "completion_tokens")
_OWN_TIMES, _FIRST_TIMES, _CACHED = map(attrgetter, ("times", "answer.ttft_ms", "answer.cached"))


def scores_of(results: Iterable[ExampleResult]) -> Values:
    """Return the scores of examples outside quarantine, and their clusters, or () if no example has a cluster."""
    scored = [
        (each.outcome.score, each.question.cluster)
        for each in results
        if each.outcome.score is not None and each.decides
    ]
    has_clusters = any(cluster for _, cluster in scored)
    return [score for score, _ in scored], [cluster for _, cluster in scored] if has_clusters else ()


def breakdown(groups: Iterable[tuple[str, ExampleResult]]) -> Breakdown:
    """Return each group's score and size, sorted by group name."""
    members: dict[str, list[ExampleResult]] = {}
    for group, result in groups:
        members.setdefault(group, []).append(result)
    return {group: {"score": mean_score(members[group]), "total": len(members[group])} for group in sorted(members)}


def mean_score(results: Iterable[ExampleResult]) -> float | None:
    """Return the mean of the scores, or None if no example has a score."""
    scores = [result.outcome.score for result in results if result.outcome.score is not None]
    return mean(scores) if scores else None


def means_by_metric(results: Sequence[ExampleResult]) -> dict[str, float | None]:
    """Return the mean of each metric, including further metrics, or None for a metric without scored examples."""
    own: dict[str, list[float]] = {}
    further: dict[str, list[float]] = {}
    for result in results:
        scores = own.setdefault(result.question.metric, [])
        if result.outcome.score is not None:
            scores.append(result.outcome.score)
        for name, value in result.outcome.metrics.items():
            values = further.setdefault(name, [])
            if result.outcome.score is not None:
                values.append(value)
    means = {**dict(sorted(own.items())), **dict(sorted(further.items()))}
    return {name: mean(values) if values else None for name, values in means.items()}


def subject_mean(subjects: Breakdown) -> dict[str, float]:
    """Return ``subject_mean``, the unweighted mean of the subjects' scores; empty if any subject has no score."""
    scores = [subject["score"] for subject in subjects.values()]
    known = [score for score in scores if score is not None]
    return {"subject_mean": mean(known)} if known and len(known) == len(scores) else {}


def by_subject(results: Sequence[ExampleResult]) -> Breakdown:
    """Return each category's score and size; empty if there are fewer than two categories."""
    categories = {result.question.category for result in results}
    return breakdown((result.question.category or "none", result) for result in results) if len(categories) > 1 else {}


def pass_at_k(correct: int, n: int, k: int) -> float:
    """Return the chance that, of k responses drawn without replacement from n >= k responses, at least one is correct.

    This is the unbiased estimator of Chen et al. (2021), "Evaluating Large Language Models Trained on Code".
    """
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def pass_hat_k(correct: int, n: int, k: int) -> float:
    """Return the chance that k responses, drawn without replacement from n >= k responses, are all correct.

    This is the unbiased estimator of Yao et al. (2024), "tau-bench".
    """
    return math.comb(correct, k) / math.comb(n, k)


def repeat_metrics(results: Sequence[ExampleResult]) -> dict[str, float]:
    """Return ``pass@k`` and ``pass^k`` for k = 1, 2, 4, ..., n, and ``maj@n``; return an empty dict without repeats.

    Each value is a mean over the scored examples. ``pass@k`` is the chance that at least one of k responses is right,
    and ``pass^k`` is the chance that all of them are. ``maj@n`` is the share of examples whose most common prediction
    is right. The result omits ``pass^1``, which equals ``pass@1``.
    """
    scored = [(result, _scores(result)) for result in results if result.outcome.details and len(_scores(result)) > 1]
    if not scored:
        return {}
    n = min(len(scores) for _, scores in scored)
    counts = [(sum(is_at_least(score, result.threshold) for score in scores), len(scores)) for result, scores in scored]
    ks = sorted({n, *(2**power for power in range(n.bit_length()) if 2**power <= n)})
    metrics = {f"pass@{k}": mean([pass_at_k(correct, total, k) for correct, total in counts]) for k in ks}
    metrics |= {f"pass^{k}": mean([pass_hat_k(correct, total, k) for correct, total in counts]) for k in ks if k > 1}
    votes = [float(vote) for result, _ in scored if (vote := result.outcome.details["majority_score"]) is not None]
    if votes:
        metrics[f"maj@{n}"] = mean(votes)
    return metrics


def repeat_errors(results: Sequence[ExampleResult]) -> dict[str, float | int | None]:
    """Return the number of repeats, and the standard errors of the task's score within and between examples.

    ``stderr_within`` is the error from repeating requests, and ``stderr_between`` is the error from the choice of
    examples. ``differ`` is the number of examples whose repeats have different scores.
    """
    scores = [_scores(result) for result in results if result.outcome.details and len(_scores(result)) > 1]
    if not scores:
        return {}
    within = [error * error for error in map(standard_error, scores) if error is not None]
    return {
        "count": min(map(len, scores)),
        "stderr_within": math.sqrt(math.fsum(within)) / len(scores),
        "stderr_between": standard_error([mean(values) for values in scores]),
        "differ": sum(len({*values}) > 1 for values in scores),
    }


def _scores(result: ExampleResult) -> Sequence[float]:
    # The details of a single response belong to the metric.
    if result.outcome.score is None or "majority_score" not in result.outcome.details:
        return ()
    scores: Sequence[float] = result.outcome.details["scores"]
    return scores


def centered(score: float, baseline: float) -> float:
    """Scale a score so that ``baseline``, in [0, 1), becomes 0 and 1 stays 1; scores below the baseline are negative.

    >>> centered(0.625, 0.25)
    0.5
    """
    return (score - baseline) / (1 - baseline)


def centered_metric(score: float | None, baseline: float | None) -> dict[str, float | None]:
    """Return the row's ``centered`` metric, or an empty dict for a task without a random baseline."""
    if baseline is None:
        return {}
    return {CENTERED: None if score is None else centered(score, baseline)}


def core_score(rows: Iterable[TaskRow]) -> float | None:
    """Return the mean of the tasks' centred scores, or None if any is missing or no task has a random baseline."""
    values = [row.metrics[CENTERED] for row in rows if CENTERED in row.metrics]
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None


def core_csv(rows: Iterable[TaskRow]) -> bytes:
    """Return a UTF-8 CSV file of the tasks with centred scores; its last line is their mean, called ``CORE``.

    The field for a missing score is empty. Return no bytes if no task has a centred score.
    """
    chosen = [row for row in rows if CENTERED in row.metrics]
    if not chosen:
        return b""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("Task", "Accuracy", "Centered"))
    table.writerows((row.task, _number(row.score), _number(row.metrics[CENTERED])) for row in chosen)
    table.writerow(("CORE", "", _number(core_score(chosen))))
    return out.getvalue().encode("utf-8", "backslashreplace")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def calibration(results: Iterable[ExampleResult]) -> dict[str, float | int]:
    """Return the :func:`confidence_metrics`, and the ``perplexity`` of any language modeling texts."""
    scored = [result for result in results if result.outcome.score is not None]
    predicted = text_metrics(scored)
    return confidence_metrics(scored) | ({"perplexity": predicted["perplexity"]} if predicted else {})


def confidence_metrics(results: Iterable[ExampleResult]) -> dict[str, float | int]:
    """Return the calibration error ``ece`` and the ``brier`` score of the ``n`` scored examples that have a confidence.

    The result is empty if no scored example has a confidence. The confidence is ``details["confidence"]``, in [0, 1].
    An answer is right if its score reaches the threshold. Only an example's first response counts.
    """
    sure = [
        (confidence, is_at_least(score, result.threshold))
        for result in _detailed(results, "confidence")
        if (score := first_score(result)) is not None
        and (confidence := confidence_of(first_details(result))) is not None
    ]
    if not sure:
        return {}
    from pytest_lmeval.metrics.parts.probability import brier_score, expected_calibration_error

    confidences, hits = [confidence for confidence, _ in sure], [hit for _, hit in sure]
    error = expected_calibration_error(confidences, hits)
    return {"ece": error, "brier": brier_score(confidences, hits), "n": len(sure)}


def text_metrics(results: Iterable[ExampleResult]) -> dict[str, float]:
    """Return ``perplexity`` per token and ``bits_per_byte`` over all texts in language modeling tasks.

    The result is empty if there are no such texts, or if their perplexity is too large for a float.
    """
    texts = [text for result in _detailed(results, "options") if (text := _text(result)) is not None]
    if not texts:
        return {}
    from pytest_lmeval.metrics.parts.probability import bits_per_byte, perplexity

    total = math.fsum(total for total, _, _ in texts)
    surprise = perplexity(total, sum(tokens for _, tokens, _ in texts))
    bits = bits_per_byte(total, sum(size for _, _, size in texts))
    return {"perplexity": surprise, "bits_per_byte": bits} if math.isfinite(surprise) else {}


def _detailed(results: Iterable[ExampleResult], name: str) -> list[ExampleResult]:
    """Return the results that have the detail ``name``, or that have repeats, whose details may contain it."""
    found = ((result, result.outcome.details) for result in results)
    return [result for result, details in found if details and (name in details or "repeats" in details)]


def _text(result: ExampleResult) -> tuple[float, int, int] | None:
    """Return the log-probability, token count and byte count of a result with exactly one text, or None."""
    details = first_details(result)
    if "options" not in details:
        return None
    try:
        (option,) = details["options"]
        total, tokens, size = float(option["total"]), int(option["tokens"]), int(details["bytes"])
    except (KeyError, TypeError, ValueError):
        return None
    return (total, tokens, size) if math.isfinite(total) and tokens > 0 and size > 0 else None


def spent(results: Sequence[ExampleResult]) -> Mapping[str, float | int]:
    """Return the known values of FIELDS, the number of timed ``requests`` and the number of ``cached`` answers.

    Times are in milliseconds per request, and exclude the waits between attempts. ``model_ms`` is an example's total
    request time, averaged over the examples with timed requests. A cached answer costs nothing, but the original
    request's tokens are counted. ``durations`` counts the timed calls of eval functions, except in examples with an
    error or a cached answer. ``requests_per_example`` is the mean number of requests, cached or not, per example of an
    eval function. If the cost or the tokens of only some examples are known, ``asked`` is the number of examples with
    requests. ``cost_known`` counts the examples with a complete cost, and ``tokens_known`` counts the examples with
    known tokens.
    """
    timed = [*filter(None, map(_OWN_TIMES, results))]
    times = sorted(chain.from_iterable(timed))
    firsts = sorted(chain.from_iterable(map(_FIRST_TIMES, results)))
    durations: list[float] = []
    for result in results:
        if DURATION in result.outcome.details and result.outcome.status != "error" and not result.answer.cached:
            took = result.outcome.details[DURATION]
            # A file may contain malformed details.
            each = took if isinstance(took, list | tuple) else [took]
            durations += [ms for ms in each if isinstance(ms, int | float)]
    durations.sort()
    asked, costs, partly, tokens = _used(results)
    requests = [len(requests_in(result)) for result in results if is_function(result)]
    found = {
        "requests": len(times) or None,
        "model_ms": round(math.fsum(times) / len(timed), 3) if timed else None,
        "p50_ms": percentile(times, 0.5, LEAST["p50_ms"]),
        "p95_ms": percentile(times, 0.95, LEAST["p95_ms"]),
        "ttft_p95_ms": percentile(firsts, 0.95, LEAST["ttft_p95_ms"]),
        "durations": len(durations) or None,
        "duration_p50_ms": percentile(durations, 0.5, LEAST["duration_p50_ms"]),
        "duration_p95_ms": percentile(durations, 0.95, LEAST["duration_p95_ms"]),
        "requests_per_example": sum(requests) / len(requests) if any(requests) else None,
        "tokens_per_example": sum(tokens) / len(tokens) if tokens else None,
        "cost_per_example": math.fsum(costs) / len(costs) if costs else None,
        "cost": math.fsum(costs) if costs else None,
        "cached": sum(map(_CACHED, results)) or None,
        "cost_known": len(costs) - partly if costs and len(costs) - partly < asked else None,
        "tokens_known": len(tokens) if 0 < len(tokens) < asked else None,
    }
    found["asked"] = None if found["cost_known"] is None and found["tokens_known"] is None else asked
    return {name: value for name, value in found.items() if value is not None}


def _used(results: Sequence[ExampleResult]) -> tuple[int, list[float], int, list[float]]:
    """Return the number of examples with requests, their known costs, the number of partial costs, and known tokens."""
    asked = partly = 0
    costs, tokens = [], []
    for result in results:
        usage, times = result.answer.usage, result.times
        # A failed request may have cost money.
        if not (usage or times or result.answer.cached) and (
            result.outcome.status not in ("error", "timeout") or is_function(result)
        ):
            continue
        asked += 1
        if "cost" in usage or (result.answer.cached and not times):
            costs.append(usage.get("cost", 0.0))
            partly += bool(usage.get(COST_UNKNOWN))
        if not usage.keys().isdisjoint(_TOKENS):
            tokens.append(sum(map(usage.get, _TOKENS, (0, 0))))
    return asked, costs, partly, tokens


def percentile(ordered: Sequence[float], share: float, least: int = 1) -> float | None:
    """Return the smallest of the ``ordered`` values that at least a ``share`` of the values do not exceed.

    Return None if there are fewer than ``least`` values.
    """
    if len(ordered) < max(1, least):
        return None
    # A rounding error may raise the product above a whole number.
    return ordered[max(0, math.ceil(round(share * len(ordered), 9)) - 1)]
