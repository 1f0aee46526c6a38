"""The score of a record that has several checks instead of a metric: all of them have to pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.formats.checks import RENAMED
from pytest_lmeval.judging.question import total
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.postprocess import Extraction, apply_metric, given_of, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.task import Tools
from pytest_lmeval.types import Completion, Example, Generate, Metric, Score

if TYPE_CHECKING:
    from pytest_lmeval.judging.graded import Graded


_CODE = "code_exec"


class _AnswerCheck(NamedTuple):
    """A check as the record has it, its name, its metric, and what that is given of an answer."""

    given: Mapping[str, Any]
    name: str
    metric: Metric
    prediction: Extraction

    @property
    def targets(self) -> tuple[str, ...]:
        """What is right."""
        return tuple(self.given.get("targets", ()))

    @property
    def extras(self) -> Mapping[str, Any]:
        """What the metric reads, and the rule for the output."""
        extras: Mapping[str, Any] = self.given.get("extras", {})
        return extras


def score_checks(
    example: Example, completion: Completion, registry: Registry, tools: Tools, make_grader: Callable[[], Graded]
) -> Score:
    """Return the mean of the checks' scores by weight, with each of them by name, the threshold that it must reach too.

    ``make_grader`` returns what asks the judge. The details list the checks, and what judges replied.
    """
    found: list[dict[str, Any]] = []
    weights, judged, usages = [], [], []
    for check in _checks(example, completion, registry):
        score = _score(check, example, tools, make_grader)
        judged += score.details.get("judge", ())
        usages.append(score.usage)
        weights.append(float(check.given.get("weight", 1)))
        found.append(_shown(check, score))
    mean = math.fsum(weight * each["score"] for weight, each in zip(weights, found, strict=True)) / math.fsum(weights)
    return Score(
        min(1.0, mean),
        {CHECKS: found, **({"judge": judged} if judged else {})},
        registry.rule(example.post_process)(completion.text).text,
        any("unparsed" in each for each in found),
        metrics={each["name"]: each["score"] for each in found},
        thresholds={each["name"]: each["threshold"] for each in found},
        usage=total(usages),
    )


def scored_by(example: Example) -> list[dict[str, Any]]:
    """Return what decides the scores of the checks: not their thresholds, and the time limit of code."""
    found = []
    for given in example.metadata[CHECKS]:
        check = {name: value for name, value in given.items() if name != "threshold"}
        if check["metric"] == _CODE:
            from pytest_lmeval.metrics.parts.code_plan import timeout_of

            check["timeout_s"] = timeout_of(check.get("extras", {}), "extras")
        found.append(check)
    return found


def has_judged(example: Example, registry: Registry) -> bool:
    """Tell whether a judge is asked for any of the checks."""
    words = (check["metric"] for check in example.metadata[CHECKS])
    return any(registry.metric(RENAMED.get(word, word)).asks_judge for word in words)


def questions(example: Example, completion: Completion, registry: Registry, graded: Graded) -> list[Generate]:
    """Return the first question to the judge of each check that asks one."""
    asking = (check for check in _checks(example, completion, registry) if check.metric.asks_judge)
    return [
        replace(graded, scorer=check.name).question(check.prediction.text, check.targets, check.extras).first
        for check in asking
        if check.prediction.found
    ]


def _checks(example: Example, completion: Completion, registry: Registry) -> Iterator[_AnswerCheck]:
    for given in example.metadata[CHECKS]:
        word = given["metric"]
        metric = registry.metric(RENAMED.get(word, word))
        rule = registry.rule(given.get("extras", {}).get("post_process") or _rule(example, word))
        prediction = given_of(predicted(completion, rule, metric), completion)
        yield _AnswerCheck(given, given.get("name", word), metric, prediction)


def _rule(example: Example, word: str) -> str:
    """Return the rule that a check without its own has: the record's, else the metric's."""
    return "extract_code_block" if word == _CODE and "post_process" not in example.metadata else example.post_process


def _score(check: _AnswerCheck, example: Example, tools: Tools, make_grader: Callable[[], Graded]) -> Score:
    metric = check.metric
    callable_tools = {"tools": example.metadata["tools"]} if metric.takes_calls else {}
    helper = replace(make_grader(), scorer=check.name) if metric.asks_judge else tools.sandbox
    return apply_metric(metric, check.prediction, check.targets, {**callable_tools, **check.extras}, helper)


def _shown(check: _AnswerCheck, score: Score) -> dict[str, Any]:
    """Return what a reader wants to know of a check."""
    given, word = check.given, check.given["metric"]
    value, threshold = share_of(score.value, word), float(given.get("threshold", check.metric.threshold))
    own_rule = "post_process" in check.extras and not check.metric.takes_calls
    more = {
        "metric": word if "name" in given else "",
        "weight": given.get("weight"),
        "targets": [*check.targets],
        "not": check.extras.get("not"),
        "prediction": score.prediction if own_rule else "",
        "unparsed": score.unparsed,
        "reason": score.details.get("reason"),
        "details": {name: detail for name, detail in score.details.items() if name not in ("judge", "reason")},
    }
    known = {name: detail for name, detail in more.items() if detail}
    return {
        "name": check.name,
        "passed": is_at_least(value, threshold),
        "score": value,
        "threshold": threshold,
        **known,
    }
