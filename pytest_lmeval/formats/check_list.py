"""The checks of a record that has several instead of a metric: ``checks: [{metric, targets, ...}]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.checks import OF_COMPACT, RENAMED, check_keys, known_metric
from pytest_lmeval.formats.metric_fields import check_metric, check_read_extras
from pytest_lmeval.formats.turns import check_calls
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_number
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Metric

_MOST_WEIGHT = 1_000_000
_OF_CHECKS = ("metric", "targets", "threshold", "name", "weight", "extras")


def check_checks(given: Any, tools: Sequence[Mapping[str, Any]], registry: Registry) -> list[dict[str, Any]]:
    """Return the checks of a record that is asked with ``tools``; raise RecordRefused for the first thing wrong."""
    if not isinstance(given, list) or not given:
        got = "an empty one" if given == [] else checks.type_name(given)
        raise RecordRefused("bad_type", CHECKS, f"expected a non-empty array of objects, got {got}")
    names: list[str] = []
    for number, check in enumerate(given):
        name = _check_check(check, f"{CHECKS}[{number}]", tools, registry)
        if name in names:
            detail = f"{name!r} is the name of {CHECKS}[{names.index(name)}], too: give each check a name of its own"
            raise RecordRefused("bad_value", f"{CHECKS}[{number}].name", detail)
        names.append(name)
    return given


def _check_check(check: Any, field: str, tools: Sequence[Mapping[str, Any]], registry: Registry) -> str:
    """Return the name of a check; raise RecordRefused for the first thing wrong with it."""
    if not isinstance(check, dict):
        raise RecordRefused("bad_type", field, f"expected an object with metric, got {checks.type_name(check)}")
    if "metric" not in check and "type" in check:
        raise RecordRefused("unknown_field", f"{field}.type", "a check names its metric: write metric instead of type")
    checks.check_names(check, _OF_CHECKS, f"{field}.")
    if "metric" not in check:
        raise RecordRefused("missing_required", f"{field}.metric", "a check has the metric that it is made by")
    metric = known_metric(check["metric"], f"{field}.metric", registry)
    known = registry.metrics[RENAMED.get(metric, metric)]
    if "targets" not in check and known.needs_targets:
        raise RecordRefused("missing_required", f"{field}.targets", f"the metric {metric} needs targets")
    targets = checks.strings(check["targets"], f"{field}.targets") if "targets" in check else ()
    extras = checks.optional_object(check, "extras", field)
    _check_extras_of_check(extras, f"{field}.extras", known, registry)
    if known.takes_calls:
        check_calls(extras, field, metric, tools)
    try:
        check_metric(known, metric, targets, extras, "extras")
        checks.reachable(targets, metric)
        check_read_extras(metric, targets, extras, registry)
        if metric == "code_exec":
            from pytest_lmeval.metrics.parts.code_plan import plan_extras, timeout_of

            timeout_of(extras, "extras")
            plan_extras(extras, targets)
    except RecordRefused as refused:
        raise RecordRefused(refused.rule, f"{field}.{refused.field}", refused.detail) from None
    return _name_of_check(check, field, metric)


def _check_extras_of_check(extras: Mapping[str, Any], field: str, metric: Metric, registry: Registry) -> None:
    for key in extras:
        if key == "threshold":
            raise RecordRefused("unknown_field", f"{field}.{key}", "the threshold of a check is beside its metric")
        if key in OF_COMPACT and key != "post_process":
            raise RecordRefused("unknown_field", f"{field}.{key}", f"{key!r} is said of the record, in its own extras")
    check_keys(extras, field, ("post_process", *metric.extras))
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
        raise RecordRefused("bad_value", f"{field}.name", "'checks' is what the board calls all of them together")
    return name
