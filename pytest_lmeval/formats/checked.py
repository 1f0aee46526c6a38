"""The score of a record that has several checks instead of a metric: all of them have to pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.formats.checks import RENAMED
from pytest_lmeval.judging.question import total
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.postprocess import Rule, apply_metric, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import Completion, Example, Generate, Metric, Score

if TYPE_CHECKING:
    from pytest_lmeval.judging.graded import Graded

_CODE = "code_exec"


class AnswerCheck(NamedTuple):
    """A check as the record has it, its name, its metric, the rule for the output, and what the metric reads."""

    given: Mapping[str, Any]
    name: str
    metric: Metric
    rule: Rule
    extras: Mapping[str, Any]

    @property
    def targets(self) -> tuple[str, ...]:
        """What is right."""
        return tuple(self.given.get("targets", ()))

    def scoring(self) -> dict[str, Any]:
        """Return what decides the score: not the threshold, and the time limit of code."""
        scoring = {name: value for name, value in self.given.items() if name != "threshold"}
        if self.metric.name == _CODE:
            from pytest_lmeval.metrics.parts.code_plan import timeout_of

            scoring["timeout_s"] = timeout_of(self.extras, "extras")
        return scoring

    def question(self, completion: Completion, graded: Graded) -> Generate | None:
        """Return the first question to the judge, or None."""
        prediction = predicted(completion, self.rule, self.metric)
        if not (self.metric.asks_judge and prediction.found):
            return None
        return replace(graded, scorer=self.name).question(prediction.text, self.targets, self.extras).first

    def score(self, completion: Completion, sandbox: Any, graded: Graded) -> Score:
        """Return the score of a completion."""
        helper = replace(graded, scorer=self.name) if self.metric.asks_judge else sandbox
        prediction = predicted(completion, self.rule, self.metric)
        return apply_metric(self.metric, prediction, self.targets, self.extras, helper)


def checks_of(example: Example, registry: Registry) -> list[AnswerCheck]:
    """Return the checks of an example; one without a rule of its own has the record's, else the metric's."""
    common = example.metadata
    found = []
    for given in common[CHECKS]:
        word, extras = given["metric"], given.get("extras", {})
        metric = registry.metric(RENAMED.get(word, word))
        usual = "extract_code_block" if word == _CODE and "post_process" not in common else example.post_process
        rule = registry.rule(extras.get("post_process") or usual)
        read = {"tools": common["tools"], **extras} if metric.takes_calls else extras
        found.append(AnswerCheck(given, given.get("name", word), metric, rule, read))
    return found


def score_checks(
    checks: Sequence[AnswerCheck], completion: Completion, rule: Rule, sandbox: Any, graded: Graded
) -> Score:
    """Return the mean of the checks' scores by weight, with each of them by name, the threshold that it must reach too.

    ``rule`` makes the prediction that is shown; ``graded`` asks the judge. The details list the checks, and what judges
    replied.
    """
    scores = [check.score(completion, sandbox, graded) for check in checks]
    found = [*map(_shown, checks, scores)]
    weights = [float(check.given.get("weight", 1)) for check in checks]
    judged = [entry for score in scores for entry in score.details.get("judge", ())]
    mean = math.fsum(weight * each["score"] for weight, each in zip(weights, found, strict=True)) / math.fsum(weights)
    return Score(
        min(1.0, mean),
        {CHECKS: found, **({"judge": judged} if judged else {})},
        rule(completion.text).text,
        any("unparsed" in each for each in found),
        metrics={each["name"]: each["score"] for each in found},
        thresholds={each["name"]: each["threshold"] for each in found},
        usage=total([score.usage for score in scores]),
    )


def _shown(check: AnswerCheck, score: Score) -> dict[str, Any]:
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
