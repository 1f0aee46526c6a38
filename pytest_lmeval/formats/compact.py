"""Read the compact dialect: records of ``id? prompt targets metric extras?`` with any registered metric and rule.

A record may have ``turns`` instead of prompt, targets and metric, or ``checks`` instead of targets and metric.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.checks import RENAMED, TURNS
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example

REQUIRED = ("prompt", "targets", "metric")
OPTIONAL = ("id", "extras")
FIELDS = frozenset({*REQUIRED, TURNS, CHECKS})
"""Every record of this dialect has one of these fields."""

IN_EXTRAS = {
    "metadata": " in this dialect it is called 'extras'",
    "metric_name": " in this dialect it is called 'metric'",
    **{
        name: f' write it into extras: "extras": {{"{name}": ...}}'
        for name in ("category", "cluster", "io_pairs", "must_pass", "post_process", "tags", "tests", "threshold")
    },
}
"""Hints for fields that authors often put at the root of a record by mistake."""
OF_RECORD = frozenset({*REQUIRED, *OPTIONAL, TURNS, CHECKS})
"""The fields of a record; in a file with defaults, other fields are data for the prompt."""


def check_compact_record(record: object, line: int, registry: Registry, folder: Path | None = None) -> Example:
    """Return the example that ``record`` describes; raise RecordRefused for the first rule it breaks.

    ``folder`` holds the record's file and images, or is None for the working folder.
    """
    if isinstance(record, dict) and "turns" in record:
        from pytest_lmeval.formats.turns import check_conversation

        return check_conversation(record, line, registry, folder)
    if isinstance(record, dict) and "checks" in record:
        return _check_checked(record, line, registry, folder)
    word = record.get("metric") if isinstance(record, dict) else None
    known = registry.metrics.get(RENAMED.get(word, word)) if isinstance(word, str) else None
    needs_targets = known is None or known.needs_targets
    required = REQUIRED if needs_targets else tuple(name for name in REQUIRED if name != "targets")
    fields = checks.check_fields(record, required, OPTIONAL if needs_targets else ("targets", *OPTIONAL), IN_EXTRAS)
    example_id = checks.id_of(fields, line)
    prompt, messages = checks.prompt_of(fields["prompt"], folder)
    targets = checks.strings(fields["targets"], "targets") if "targets" in fields else ()
    metric = checks.known_metric(fields["metric"], "metric", registry)
    extras = checks.extras_of(fields, registry.metrics[RENAMED.get(metric, metric)])
    rule = _check_extras(extras, metric, targets, registry)
    category = checks.category_of(extras)
    return Example(example_id, prompt, targets, metric, rule, category, metadata=extras, line=line, messages=messages)


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if ``record`` has the fields of this dialect, or is a line with ``defaults``."""
    if record.keys() == {"defaults"}:
        return isinstance(record["defaults"], dict)
    if TURNS in record:
        turns = record[TURNS]
        return isinstance(turns, list) and any(isinstance(turn, dict) and "user" in turn for turn in turns)
    # Some metrics need extras instead of targets.
    has_metric = {"prompt", "metric"} <= record.keys() and not {"targets", "extras"}.isdisjoint(record)
    return has_metric or {"prompt", CHECKS} <= record.keys()


def _check_checked(record: Mapping[str, Any], line: int, registry: Registry, folder: Path | None) -> Example:
    from pytest_lmeval.formats.check_list import check_checks
    from pytest_lmeval.formats.turns import check_tools

    for name in ("targets", "metric"):
        if name in record:
            raise RecordRefused("unknown_field", name, f"a record with checks has no {name}: write it in each check")
    fields = checks.check_fields(record, ("prompt", CHECKS), OPTIONAL, IN_EXTRAS)
    example_id = checks.id_of(fields, line)
    prompt, messages = checks.prompt_of(fields["prompt"], folder)
    extras = checks.extras_of(fields, registry.metrics[CHECKS])
    rule = checks.one_of(extras.get("post_process", "none"), "extras.post_process", registry.rules)
    data = {**extras, CHECKS: check_checks(fields[CHECKS], check_tools(extras), registry)}
    category = checks.category_of(extras)
    return Example(example_id, prompt, (), CHECKS, rule, category, metadata=data, line=line, messages=messages)


def _check_extras(extras: Mapping[str, Any], metric: str, targets: tuple[str, ...], registry: Registry) -> str:
    known = registry.metrics[RENAMED.get(metric, metric)]
    if known.takes_calls:
        from pytest_lmeval.formats.tools import check_call_extras, check_choice, tools_of

        if "tools" not in extras:
            raise RecordRefused("missing_required", "extras.tools", f"the metric {metric} needs the tools to call")
        tools = tools_of(extras["tools"], "extras.tools")
        check_choice(extras, "extras", tools)
        check_call_extras(extras, "extras", tools)
    checks.check_scoring(known, metric, targets, extras)
    if "post_process" in extras:
        return checks.one_of(extras["post_process"], "extras.post_process", registry.rules)
    return "extract_code_block" if metric == "code_exec" else "none"
