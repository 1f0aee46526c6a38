"""Validate and score records that have ``checks: [{metric, targets, ...}]`` instead of a metric.

A record passes only if every check passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.checks import OF_COMPACT, RENAMED
from pytest_lmeval.formats.turns import check_calls
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number, total_usage
from pytest_lmeval.postprocess import Rule, apply_metric, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import Completion, Example, Generate, Metric, Score

if TYPE_CHECKING:
    from pytest_lmeval.judging.graded import Graded

_CODE = "code_exec"
_MOST_WEIGHT = 1_000_000
_OF_CHECKS = ("metric", "targets", "threshold", "name", "weight", "extras")


def check_checks(given: Any, tools: Sequence[Mapping[str, Any]], registry: Registry) -> list[dict[str, Any]]:
    """Return the checks of a record that offers ``tools``; raise RecordRefused for the first error."""
    names: list[str] = []
    for number, check in enumerate(checks.filled_list(given, CHECKS, "array of objects")):
        name = _check_check(check, f"{CHECKS}[{number}]", tools, registry)
        if name in names:
            detail = f"{name!r} is also the name of {CHECKS}[{names.index(name)}]: give each check a different name"
            raise RecordRefused("bad_value", f"{CHECKS}[{number}].name", detail)
        names.append(name)
    return [*given]


def _check_check(check: Any, field: str, tools: Sequence[Mapping[str, Any]], registry: Registry) -> str:
    """Return a check's name; raise RecordRefused for its first error."""
    if not isinstance(check, dict):
        raise RecordRefused("bad_type", field, f"expected an object with metric, got {checks.type_name(check)}")
    if "metric" not in check and "type" in check:
        raise RecordRefused("unknown_field", f"{field}.type", "a check names its metric: write metric instead of type")
    checks.check_names(check, _OF_CHECKS, f"{field}.")
    if "metric" not in check:
        raise RecordRefused("missing_required", f"{field}.metric", "a check needs a metric")
    metric = checks.known_metric(check["metric"], f"{field}.metric", registry)
    known = registry.metrics[RENAMED.get(metric, metric)]
    if "targets" not in check and known.needs_targets:
        raise RecordRefused("missing_required", f"{field}.targets", f"the metric {metric} needs targets")
    targets = checks.strings(check["targets"], f"{field}.targets") if "targets" in check else ()
    extras = checks.optional_object(check, "extras", field)
    _check_extras_of_check(extras, f"{field}.extras", known, registry)
    if known.takes_calls:
        check_calls(extras, field, metric, tools)
    try:
        checks.check_scoring(known, metric, targets, extras)
    except RecordRefused as refused:
        raise RecordRefused(refused.rule, f"{field}.{refused.field}", refused.detail) from None
    return _name_of_check(check, field, metric)


def _check_extras_of_check(extras: Mapping[str, Any], field: str, metric: Metric, registry: Registry) -> None:
    for key in extras:
        if key == "threshold":
            raise RecordRefused(
                "unknown_field", f"{field}.{key}", "the threshold belongs beside the metric of the check"
            )
        if key in OF_COMPACT and key != "post_process":
            raise RecordRefused("unknown_field", f"{field}.{key}", f"{key!r} belongs in the extras of the record")
    checks.check_keys(extras, field, ("post_process", *metric.extras))
    if "post_process" in extras:
        checks.one_of(extras["post_process"], f"{field}.post_process", registry.rules)


def _name_of_check(check: Mapping[str, Any], field: str, metric: str) -> str:
    if "threshold" in check:
        checks.number_in_range(check["threshold"], f"{field}.threshold", 0.0, 1.0)
    weight = check.get("weight", 1)
    if not is_number(weight) or not 0 < weight <= _MOST_WEIGHT:
        detail = f"expected a number above 0, at most {_MOST_WEIGHT:,}, got {weight!r:.80}"
        raise RecordRefused("bad_value", f"{field}.weight", detail)
    name = checks.string(check.get("name", metric), f"{field}.name")
    if name == CHECKS:
        raise RecordRefused("bad_value", f"{field}.name", "'checks' is the board's name for all checks together")
    return name


class AnswerCheck(NamedTuple):
    """A check with its metric, post-process rule and extras.

    ``given`` is the check's entry in the record.
    """

    given: Mapping[str, Any]
    name: str
    metric: Metric
    rule: Rule
    extras: Mapping[str, Any]

    @property
    def targets(self) -> tuple[str, ...]:
        """The right answers."""
        return tuple(self.given.get("targets", ()))

    def scoring(self) -> dict[str, Any]:
        """Return the fields that affect the score: all except the threshold, plus the time limit for code."""
        scoring = {name: value for name, value in self.given.items() if name != "threshold"}
        if self.metric.name == _CODE:
            from pytest_lmeval.metrics.parts.code_plan import timeout_of

            scoring["timeout_s"] = timeout_of(self.extras, "extras")
        return scoring

    def question(self, completion: Completion, graded: Graded) -> Generate | None:
        """Return the first question for the judge, or None if the check has no question."""
        prediction = predicted(completion, self.rule, self.metric)
        if not (self.metric.asks_judge and prediction.found):
            return None
        return replace(graded, scorer=self.name).question(prediction.text, self.targets, self.extras).first

    def score(self, completion: Completion, sandbox: Any, graded: Graded) -> Score:
        """Return a completion's score."""
        helper = replace(graded, scorer=self.name) if self.metric.asks_judge else sandbox
        prediction = predicted(completion, self.rule, self.metric)
        return apply_metric(self.metric, prediction, self.targets, self.extras, helper)


def checks_of(example: Example, registry: Registry) -> list[AnswerCheck]:
    """Return an example's checks.

    A check without a rule uses the record's rule or, for code in a record without a rule, ``extract_code_block``.
    """
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
    """Return the weighted mean score of the checks, with each check's score and threshold by name.

    ``rule`` extracts the prediction for reports, and ``graded`` asks the judge. The score's details list the checks and
    the judges' replies.
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
        usage=total_usage([score.usage for score in scores]),
    )


def _shown(check: AnswerCheck, score: Score) -> dict[str, Any]:
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
