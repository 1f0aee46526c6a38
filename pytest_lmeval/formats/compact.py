"""The compact dialect: ``id? prompt targets metric extras?``, open to every registered metric and rule.

A record with ``turns`` has them instead of prompt, targets and metric, one with ``checks`` instead of the last two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.checks import OF_COMPACT, RENAMED, TURNS, check_keys, known_metric
from pytest_lmeval.formats.metric_fields import READ_EXTRAS, check_metric, check_read_extras
from pytest_lmeval.formats.tools import check_call_extras, check_choice, check_responses, tools_of
from pytest_lmeval.leaderboard.details import CHECKS
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example, Message

REQUIRED = ("prompt", "targets", "metric")
OPTIONAL = ("id", "extras")
FIELDS = frozenset({*REQUIRED, TURNS, CHECKS})
"""A record without any of these is none of this dialect, however bad."""
_OF_TURNS = ("user", "targets", "metric", "post_process", "extras")


IN_EXTRAS = {
    "metadata": " in this dialect it is called 'extras'",
    "metric_name": " in this dialect it is called 'metric'",
    **{
        name: f' write it into extras: "extras": {{"{name}": ...}}'
        for name in ("category", "cluster", "io_pairs", "must_pass", "post_process", "tags", "tests", "threshold")
    },
}
"""Of fields that people look for in a record, where they belong."""
OF_RECORD = frozenset({*REQUIRED, *OPTIONAL, TURNS, CHECKS})
"""The fields of a record; what else it has in a file with defaults is data for the prompt."""


def check_compact_record(record: object, line: int, registry: Registry) -> Example:
    """Return the example that ``record`` describes; raise RecordRefused for the first rule it breaks."""
    if isinstance(record, dict) and "turns" in record:
        return _check_conversation(record, line, registry)
    if isinstance(record, dict) and "checks" in record:
        return _check_checked(record, line, registry)
    word = record.get("metric") if isinstance(record, dict) else None
    known = registry.metrics.get(RENAMED.get(word, word)) if isinstance(word, str) else None
    needs_targets = known is None or known.needs_targets
    required = REQUIRED if needs_targets else tuple(name for name in REQUIRED if name != "targets")
    fields = checks.check_fields(record, required, OPTIONAL if needs_targets else ("targets", *OPTIONAL), IN_EXTRAS)
    example_id = _id(fields, line)
    prompt = checks.string(fields["prompt"], "prompt")
    targets = checks.strings(fields["targets"], "targets") if "targets" in fields else ()
    metric = known_metric(fields["metric"], "metric", registry)
    extras = checks.optional_object(fields, "extras")
    rule = _check_extras(extras, metric, targets, registry)
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


def is_record(record: Mapping[str, Any]) -> bool:
    """Tell whether ``record`` has what a record of this dialect needs, right or wrong: other data hardly has it.

    So has the first one, which says what the others need not.
    """
    if record.keys() == {"defaults"}:
        return isinstance(record["defaults"], dict)
    if TURNS in record:
        turns = record[TURNS]
        return isinstance(turns, list) and any(isinstance(turn, dict) and "user" in turn for turn in turns)
    # Some metrics have what they want in the extras.
    has_metric = {"prompt", "metric"} <= record.keys() and not {"targets", "extras"}.isdisjoint(record)
    return has_metric or {"prompt", CHECKS} <= record.keys()


def turn_is_scored(turn: Mapping[str, Any]) -> bool:
    """Tell whether a turn is scored: it has targets, or a metric that does without."""
    return "targets" in turn or "metric" in turn


def _check_checked(record: Mapping[str, Any], line: int, registry: Registry) -> Example:
    from pytest_lmeval.formats.check_list import check_checks

    for name in ("targets", "metric"):
        if name in record:
            raise RecordRefused("unknown_field", name, f"a record with checks has no {name} of its own: each check has")
    fields = checks.check_fields(record, ("prompt", CHECKS), OPTIONAL, IN_EXTRAS)
    example_id = _id(fields, line)
    prompt = checks.string(fields["prompt"], "prompt")
    extras = checks.optional_object(fields, "extras")
    checks.gate_fields(extras, "extras")
    check_keys(extras, "extras", (*OF_COMPACT, *registry.metrics[CHECKS].extras))
    rule = checks.one_of(extras.get("post_process", "none"), "extras.post_process", registry.rules)
    given = check_checks(fields[CHECKS], _check_tools(extras), registry)
    return Example(
        id=example_id,
        prompt=prompt,
        targets=(),
        metric=CHECKS,
        post_process=rule,
        category=checks.string(extras["category"], "extras.category") if "category" in extras else "",
        metadata={**extras, CHECKS: given},
        line=line,
    )


def _check_conversation(record: Mapping[str, Any], line: int, registry: Registry) -> Example:
    for name in REQUIRED:
        if name in record:
            detail = f"a record with turns has no {name} of its own: what is asked and scored is in the turns"
            raise RecordRefused("unknown_field", name, detail)
    fields = checks.check_fields(record, ("turns",), OPTIONAL)
    example_id = _id(fields, line)
    extras = checks.optional_object(fields, "extras")
    checks.gate_fields(extras, "extras")
    check_keys(extras, "extras", (*OF_COMPACT, *registry.metrics[TURNS].extras))
    tools = _check_tools(extras)
    turns = fields["turns"]
    if not isinstance(turns, list) or not turns:
        got = "an empty one" if turns == [] else checks.type_name(turns)
        raise RecordRefused("bad_type", "turns", f"expected a non-empty array of objects, got {got}")
    for number, turn in enumerate(turns):
        _check_turn(turn, f"turns[{number}]", tools, registry)
    if not any(map(turn_is_scored, turns)):
        raise RecordRefused("bad_value", "turns", "no turn has targets: nothing would be scored")
    return Example(
        id=example_id,
        prompt="\n\n".join(turn["user"] for turn in turns),
        targets=(),
        metric=TURNS,
        category=checks.string(extras["category"], "extras.category") if "category" in extras else "",
        metadata={**extras, "turns": turns},
        line=line,
        messages=(Message("user", turns[0]["user"]),),
    )


def _check_turn(turn: Any, field: str, tools: Sequence[Mapping[str, Any]], registry: Registry) -> None:
    _check_turn_fields(turn, field)
    extras = checks.optional_object(turn, "extras", field)
    if "threshold" in extras:
        checks.number_in_range(extras["threshold"], f"{field}.extras.threshold", 0.0, 1.0)
    if "post_process" in turn:
        checks.one_of(turn["post_process"], f"{field}.post_process", registry.rules)
    metric = known_metric(turn.get("metric", "exact_match"), f"{field}.metric", registry)
    known = registry.metrics[RENAMED.get(metric, metric)]
    check_keys(extras, f"{field}.extras", ("threshold", *known.extras))
    if known.needs_sandbox or known.asks_judge:
        what = "runs programs" if known.needs_sandbox else "asks a judge"
        raise RecordRefused("bad_value", f"{field}.metric", f"{metric} {what}, which a turn cannot")
    if "targets" in turn:
        targets = checks.strings(turn["targets"], f"{field}.targets")
        check_metric(known, metric, targets, extras, f"{field}.extras")
    elif "metric" in turn and known.needs_targets:
        raise RecordRefused("missing_required", f"{field}.targets", f"the metric {metric} needs targets")
    if known.takes_calls:
        if not tools:
            raise RecordRefused(
                "missing_required", "extras.tools", f"{field} has the metric {metric}, and there are no tools"
            )
        check_call_extras(extras, f"{field}.extras", tools)


def _check_turn_fields(turn: Any, field: str) -> None:
    if not isinstance(turn, dict):
        raise RecordRefused("bad_type", field, f"expected an object with user, got {checks.type_name(turn)}")
    for name in turn:
        if name not in _OF_TURNS:
            hint = nearest(name, _OF_TURNS, "expected one of")
            raise RecordRefused("unknown_field", f"{field}.{name}", f"unknown field {name!r}{hint}")
    if "user" not in turn:
        raise RecordRefused("missing_required", f"{field}.user", "a turn begins with what the user says")
    checks.string(turn["user"], f"{field}.user")


def _check_tools(extras: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tools of a conversation; raise RecordRefused where what the extras say of them cannot be used."""
    tools = tools_of(extras["tools"], "extras.tools") if "tools" in extras else ()
    check_choice(extras, "extras", tools)
    if "responses" in extras:
        check_responses(extras["responses"], "extras.responses", tools)
    if "max_rounds" in extras:
        if "responses" not in extras:
            detail = "it limits how often tools answer, which they do by extras.responses alone"
            raise RecordRefused("missing_required", "extras.responses", f"extras.max_rounds: {detail}")
        rounds = checks.number_in_range(extras["max_rounds"], "extras.max_rounds", 1, 100)
        if not rounds.is_integer():
            raise RecordRefused("bad_value", "extras.max_rounds", f"expected a whole number, got {rounds!r}")
    return tools


def _id(fields: Mapping[str, Any], line: int) -> str:
    value = fields.get("id", f"ex-{line}")
    return str(value) if not isinstance(value, str) and is_whole(value) else checks.string(value, "id")


def _check_extras(extras: Mapping[str, Any], metric: str, targets: tuple[str, ...], registry: Registry) -> str:
    known = registry.metrics[RENAMED.get(metric, metric)]
    if extras:
        checks.gate_fields(extras, "extras")
        check_keys(extras, "extras", (*OF_COMPACT, *known.extras))
    if metric == "code_exec":
        from pytest_lmeval.metrics.parts.code_plan import plan_extras, timeout_of

        timeout_of(extras, "extras")
        plan_extras(extras, targets)
    if known.takes_calls:
        if "tools" not in extras:
            raise RecordRefused(
                "missing_required", "extras.tools", f"the metric {metric} needs the tools that may be called"
            )
        tools = tools_of(extras["tools"], "extras.tools")
        check_choice(extras, "extras", tools)
        check_call_extras(extras, "extras", tools)
    if known.check is not None or "not" in extras:
        check_metric(known, metric, targets, extras, "extras")
    if metric in READ_EXTRAS:
        check_read_extras(metric, targets, extras, registry)
    if "post_process" in extras:
        return checks.one_of(extras["post_process"], "extras.post_process", registry.rules)
    return "extract_code_block" if metric == "code_exec" else "none"
