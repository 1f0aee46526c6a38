"""The compact dialect: ``id? prompt targets metric extras?``, open to every registered metric and rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, UnknownName
from pytest_lmeval.formats import checks
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example

REQUIRED = ("prompt", "targets", "metric")
OPTIONAL = ("id", "extras")


def compact_metric(word: str) -> str:
    """Return the registry's name for a compact file's word: ``exact_match`` there ignores case and spacing."""
    return "exact_match_normalized" if word == "exact_match" else word


_IN_EXTRAS = {
    "metadata": " in this dialect it is called 'extras'",
    "metric_name": " in this dialect it is called 'metric'",
    **{
        name: f' write it into extras: "extras": {{"{name}": ...}}'
        for name in ("category", "cluster", "io_pairs", "must_pass", "post_process", "tags", "tests", "threshold")
    },
}
_READ_EXTRAS = frozenset({"csv_columns", "csv_separator", "has_csv", "json_exact", "json_schema"})


def check_compact_record(record: object, line: int, registry: Registry) -> Example:
    """Return the example that ``record`` describes; raise RecordRefused for the first rule it breaks."""
    fields = checks.check_fields(record, REQUIRED, OPTIONAL, _IN_EXTRAS)
    example_id = _id(fields, line)
    prompt = checks.string(fields["prompt"], "prompt")
    targets = checks.strings(fields["targets"], "targets")
    metric = checks.string(fields["metric"], "metric")
    if compact_metric(metric) not in registry.metrics:
        raise RecordRefused("bad_value", "metric", str(UnknownName("metric", metric, registry.metrics)))
    extras = checks.optional_object(fields, "extras")
    rule = _check_extras(extras, metric, targets, registry)
    if metric == "substring_contains" and not all(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", "an empty target stands in every text; give a text to look for")
    checks.reachable(targets, metric)
    return Example(
        id=example_id,
        prompt=prompt,
        targets=targets,
        metric=metric,
        post_process=rule,
        category=checks.string(extras["category"], "extras.category") if "category" in extras else "",
        metadata=extras,
        line=line,
    )


def _id(fields: Mapping[str, Any], line: int) -> str:
    value = fields.get("id", f"ex-{line}")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return checks.string(value, "id")


def _check_extras(extras: Mapping[str, Any], metric: str, targets: tuple[str, ...], registry: Registry) -> str:
    checks.gate_fields(extras, "extras")
    if metric == "code_exec":
        from pytest_lmeval.metrics.parts.code_plan import plan_extras, timeout_of

        timeout_of(extras, "extras")
        plan_extras(extras, targets)
    if metric in _READ_EXTRAS:
        # What an answer is held to stands there: a record of which no answer could be scored is refused now.
        try:
            registry.metric(metric).function("", targets, extras)
        except ScoringError as error:  # what the metric needs is not installed
            raise RecordRefused("bad_value", "metric", str(error)) from None
    if "post_process" in extras:
        return checks.one_of(extras["post_process"], "extras.post_process", registry.rules)
    return "extract_code_block" if metric == "code_exec" else "none"
