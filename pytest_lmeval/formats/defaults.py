"""Read the ``defaults`` in the first line of a compact file: fields and a prompt for all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.compact import IN_EXTRAS, OF_RECORD
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.rows import PartsTemplate, RowTemplate, RowValue

DEFAULTS = "defaults"
_KEYS = ("prompt", "metric", "post_process", "threshold", "extras", "columns")
_IN_EXTRAS = ("post_process", "threshold")


@dataclass(frozen=True, slots=True)
class Defaults:
    """The fields that all records of a file share.

    ``metric`` is None if the defaults name no metric. A record's keys that are not fields of the format are data for
    ``prompt`` and ``extras``. Records may also have the keys in ``columns``, although nothing uses them.
    """

    metric: str | None
    extras: RowValue
    prompt: RowTemplate | PartsTemplate | None
    columns: frozenset[str]

    def filled_in(self, record: Any) -> Any:
        """Return ``record`` with the defaults filled in; raise RecordRefused for a key that nothing uses."""
        if not isinstance(record, dict):
            return record
        own = {name: value for name, value in record.items() if name in OF_RECORD}
        row = {name: value for name, value in record.items() if name not in OF_RECORD}
        self._check_keys(row)
        if self.prompt is not None and "prompt" not in own and "turns" not in own:
            own["prompt"] = self.prompt.fill(row)
        if self.metric is not None and own.keys().isdisjoint(("metric", "turns", "checks")):
            own["metric"] = self.metric
        extras = own.get("extras", {})
        return {**own, "extras": {**self.extras.fill(row), **extras}} if isinstance(extras, dict) else own

    def _check_keys(self, row: Mapping[str, Any]) -> None:
        prompt = () if self.prompt is None else self.prompt.templates
        templates = [*self.extras.templates, *prompt]
        used = self.columns.union(*(template.used(row) for template in templates))
        for name in row:
            if name not in used:
                elsewhere = f";{IN_EXTRAS[name]}" if name in IN_EXTRAS else nearest(name, [*OF_RECORD, *sorted(used)])
                hint = elsewhere or "; nothing uses it: list columns that are only data in defaults.columns"
                raise RecordRefused("unknown_field", name, f"unknown field {name!r}{hint}")


def read_defaults(record: Mapping[str, Any], registry: Registry) -> Defaults:
    """Return the defaults in the first record of a file; raise RecordRefused for their first error."""
    for name in record:
        if name != DEFAULTS:
            raise RecordRefused("unknown_field", name, "a line with defaults has no other key: records follow it")
    given = checks.optional_object(record, DEFAULTS)
    checks.check_names(given, _KEYS, f"{DEFAULTS}.")
    metric = checks.known_metric(given["metric"], f"{DEFAULTS}.metric", registry) if "metric" in given else None
    extras = RowValue.of(common_extras(given, registry, DEFAULTS), f"{DEFAULTS}.extras")
    return Defaults(metric, extras, _prompt(given), _columns(given))


def common_extras(given: Mapping[str, Any], registry: Registry, within: str = "") -> Mapping[str, Any]:
    """Return the extras of every record: the ``extras``, ``post_process`` and ``threshold`` in ``given``.

    Raises RecordRefused for the first error. ``within`` is the path of ``given``, or "" for the root.
    """
    prefix = f"{within}." if within else ""
    extras = checks.optional_object(given, "extras", within)
    checks.gate_fields(extras, f"{prefix}extras")
    if "post_process" in given:
        checks.one_of(given["post_process"], f"{prefix}post_process", registry.rules)
    if "threshold" in given:
        checks.number_in_range(given["threshold"], f"{prefix}threshold", 0.0, 1.0)
    twice = next((name for name in _IN_EXTRAS if name in given and name in extras), None)
    if twice is not None:
        raise RecordRefused("bad_value", f"{prefix}{twice}", f"{prefix}extras has {twice!r}, too: give it once")
    return {**extras, **{name: given[name] for name in _IN_EXTRAS if name in given}}


def _prompt(given: Mapping[str, Any]) -> RowTemplate | PartsTemplate | None:
    if "prompt" not in given:
        return None
    field = f"{DEFAULTS}.prompt"
    prompt = prompt_template(given["prompt"], field)
    own = sorted(set().union(*(template.used(()) for template in prompt.templates)) & OF_RECORD)
    if own:
        raise RecordRefused("bad_value", field, f"{own[0]!r} is a field of records; a prompt uses their other keys")
    return RowTemplate("prompt", prompt.template) if isinstance(prompt, RowTemplate) else prompt


def prompt_template(given: object, field: str) -> RowTemplate | PartsTemplate:
    """Return the template for a string, or for a list of text and media; raise RecordRefused for any other value."""
    if checks.has_media(given):
        return PartsTemplate.of(given, field)
    return RowTemplate.of(checks.string(given, field), field)


def _columns(given: Mapping[str, Any]) -> frozenset[str]:
    if "columns" not in given:
        return frozenset()
    names = checks.strings(given["columns"], f"{DEFAULTS}.columns")
    for name in names:
        if name in OF_RECORD or names.count(name) > 1:
            why = "occurs twice" if names.count(name) > 1 else "is a field of records"
            raise RecordRefused("bad_value", f"{DEFAULTS}.columns", f"{name!r} {why}")
    return frozenset(names)
