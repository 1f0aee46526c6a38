"""The score of a record that has several checks in place of a metric: all of them have to pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.formats.metric_fields import RENAMED
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.postprocess import Extraction, apply_metric, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Completion, Example, Metric, Score


def score_checks(example: Example, completion: Completion, registry: Registry) -> Score:
    """Return the mean of the checks' scores by weight, with each of them by name, the threshold that it must reach too.

    The details list the checks.
    """
    given = example.metadata[CHECKS]
    found = [_check(check, example, completion, registry) for check in given]
    weights = [float(check.get("weight", 1)) for check in given]
    total = math.fsum(weight * each["score"] for weight, each in zip(weights, found, strict=True))
    return Score(
        min(1.0, total / math.fsum(weights)),
        {CHECKS: found},
        registry.rule(example.post_process)(completion.text).text,
        any("unparsed" in each for each in found),
        metrics={each["name"]: each["score"] for each in found},
        thresholds={each["name"]: each["threshold"] for each in found},
    )


def _check(check: Mapping[str, Any], example: Example, completion: Completion, registry: Registry) -> dict[str, Any]:
    word, extras = check["metric"], check.get("extras", {})
    metric = registry.metric(RENAMED.get(word, word))
    prediction = predicted(completion, registry.rule(extras.get("post_process", example.post_process)), metric)
    # Thoughts without an answer are nothing that could be right, or not wrong.
    prediction = Extraction(prediction.text, prediction.found and not completion.has_no_answer)
    tools = {"tools": example.metadata["tools"]} if metric.takes_calls else {}
    score = apply_metric(metric, prediction, tuple(check.get("targets", ())), {**tools, **extras})
    value, threshold = share_of(score.value, word), float(check.get("threshold", metric.threshold))
    return {
        "name": check.get("name", word),
        "passed": value >= threshold,
        "score": value,
        "threshold": threshold,
        **_said(check, score, example, metric),
    }


def _said(check: Mapping[str, Any], score: Score, example: Example, metric: Metric) -> dict[str, Any]:
    """Return what a reader wants to know of a check besides its score."""
    extras = check.get("extras", {})
    own_rule = "post_process" in extras and not metric.takes_calls
    known = {
        "metric": check["metric"] if "name" in check else "",
        "weight": check.get("weight"),
        "targets": [*check.get("targets", ())],
        "not": extras.get("not"),
        "prediction": score.prediction if own_rule else "",
        "unparsed": score.unparsed,
        "details": dict(score.details),
    }
    return {name: value for name, value in known.items() if value}
