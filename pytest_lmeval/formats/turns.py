"""Check and score records with turns, and make the script for the user and the tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.formats import checks
from pytest_lmeval.formats.checks import RENAMED, TURNS
from pytest_lmeval.formats.tools import check_call_extras, check_choice, check_responses, tools_of
from pytest_lmeval.formats.turning import MAX_ROUNDS, Script, answer_of, asked_in, by_turn, from_table, said_in
from pytest_lmeval.hashes import rendered
from pytest_lmeval.postprocess import apply_metric, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import Completion, Example, Exchange, Message, Score, kinds_in

_OF_TURNS = ("user", "targets", "metric", "post_process", "extras")


def check_conversation(record: Mapping[str, Any], line: int, registry: Registry, folder: Path | None = None) -> Example:
    """Return the example that a record with turns describes; raise RecordRefused for its first error.

    ``folder`` is the record file's folder, or None for the working folder.
    """
    for name in ("prompt", "targets", "metric"):
        if name in record:
            detail = f"a record with turns has no {name}: its turns have messages, targets and metrics"
            raise RecordRefused("unknown_field", name, detail)
    fields = checks.check_fields(record, ("turns",), ("id", "extras"))
    example_id = checks.id_of(fields, line)
    extras = checks.extras_of(fields, registry.metrics[TURNS])
    tools = check_tools(extras)
    turns = checks.filled_list(fields["turns"], "turns", "array of objects")
    for number, turn in enumerate(turns):
        _check_turn(turn, f"turns[{number}]", tools, registry)
    if not any(map(_is_scored, turns)):
        raise RecordRefused("bad_value", "turns", "no turn has targets: nothing would be scored")
    users = [_user(turn["user"], f"turns[{number}].user", folder) for number, turn in enumerate(turns)]
    prompt, first = "\n\n".join(user.content for user in users), (users[0],)
    # The list in the record may have a data: address, which must not stay in memory.
    turns = [{**turn, "user": user} if user.parts else turn for turn, user in zip(turns, users, strict=True)]
    data = {**extras, "turns": turns}
    category = checks.category_of(extras)
    kinds = kinds_in(users)
    return Example(
        example_id, prompt, (), TURNS, category=category, metadata=data, line=line, messages=first, media=kinds
    )


def _check_turn(turn: Any, field: str, tools: Sequence[Mapping[str, Any]], registry: Registry) -> None:
    _check_turn_fields(turn, field)
    extras = checks.optional_object(turn, "extras", field)
    if "threshold" in extras:
        checks.number_in_range(extras["threshold"], f"{field}.extras.threshold", 0.0, 1.0)
    if "post_process" in turn:
        checks.one_of(turn["post_process"], f"{field}.post_process", registry.rules)
    metric = checks.known_metric(turn.get("metric", "exact_match"), f"{field}.metric", registry)
    known = registry.metrics[RENAMED.get(metric, metric)]
    checks.check_keys(extras, f"{field}.extras", ("threshold", *known.extras))
    if known.needs_sandbox or known.asks_judge:
        what = "runs programs" if known.needs_sandbox else "asks a judge"
        raise RecordRefused("bad_value", f"{field}.metric", f"{metric} {what}, which a turn cannot")
    if "targets" in turn:
        targets = checks.strings(turn["targets"], f"{field}.targets")
        checks.check_metric(known, metric, targets, extras, f"{field}.extras")
    elif "metric" in turn and known.needs_targets:
        raise RecordRefused("missing_required", f"{field}.targets", f"the metric {metric} needs targets")
    if known.takes_calls:
        check_calls(extras, field, metric, tools)


def check_calls(extras: Mapping[str, Any], field: str, metric: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused if tools or expected calls are missing for the turn or check at ``field``."""
    if not tools:
        raise RecordRefused("missing_required", "extras.tools", f"{field} has the metric {metric}, but no tools")
    check_call_extras(extras, f"{field}.extras", tools)


def _check_turn_fields(turn: Any, field: str) -> None:
    if not isinstance(turn, dict):
        raise RecordRefused("bad_type", field, f"expected an object with user, got {checks.type_name(turn)}")
    checks.check_names(turn, _OF_TURNS, f"{field}.")
    if "user" not in turn:
        raise RecordRefused("missing_required", f"{field}.user", "a turn begins with a message of the user")


def _user(given: Any, field: str, folder: Path | None) -> Message:
    content, messages = checks.prompt_of(given, folder, field)
    return messages[0] if messages else Message("user", content)


def user_message(turn: Mapping[str, object]) -> Message:
    """Return the user's message in a checked turn."""
    user = turn["user"]
    return user if isinstance(user, Message) else Message("user", str(user))


def asked_by(turns: Sequence[Mapping[str, object]]) -> list[object]:
    """Return turns in the form used for hashes, in which the content of media replaces their paths."""
    pairs = [(turn, turn["user"]) for turn in turns]
    return [{**turn, "user": rendered([user])} if isinstance(user, Message) else turn for turn, user in pairs]


def check_tools(extras: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tools in a record's extras; raise RecordRefused for invalid tools or tool settings."""
    tools = tools_of(extras["tools"], "extras.tools") if "tools" in extras else ()
    check_choice(extras, "extras", tools)
    if "responses" in extras:
        check_responses(extras["responses"], "extras.responses", tools)
    if "max_rounds" in extras:
        if "responses" not in extras:
            detail = "extras.max_rounds limits the answers of tools, which only extras.responses makes"
            raise RecordRefused("missing_required", "extras.responses", detail)
        rounds = checks.number_in_range(extras["max_rounds"], "extras.max_rounds", 1, 100)
        if not rounds.is_integer():
            raise RecordRefused("bad_value", "extras.max_rounds", f"expected a whole number, got {rounds!r}")
    return tools


def tools_in(example: Example) -> dict[str, Any]:
    """Return a record's tools and tool choice as arguments for a request."""
    extras = example.metadata
    return {"tools": tools_of(extras["tools"], "extras.tools"), "tool_choice": extras.get("tool_choice", "")}


def script_of(example: Example) -> Script:
    """Return the script for a record with turns."""
    extras = example.metadata
    respond = from_table(extras["responses"]) if "responses" in extras else None
    return Script([user_message(turn) for turn in extras["turns"]], respond, extras.get("max_rounds", MAX_ROUNDS))


def score_turns(example: Example, response: Completion, registry: Registry) -> Score:
    """Return the share of scored turns that pass; the details list every turn."""
    extras, script = example.metadata, script_of(example)
    talk, turns = by_turn(response.exchanges), extras["turns"]
    if len(talk) != len(turns):
        raise ScoringError(f"only {len(talk)} of {len(turns)} turns ran")
    tools = {"tools": extras["tools"]} if "tools" in extras else {}
    found = [_turn(turn, exchanges, script, registry, tools) for turn, exchanges in zip(turns, talk, strict=True)]
    passed = [each["passed"] for each in found if "passed" in each]
    predictions = [each["prediction"] for each in found if "prediction" in each]
    unparsed = any(each.get("unparsed", False) for each in found)
    return Score(sum(passed) / len(passed), {"turns": found}, "\n".join(predictions), unparsed)


def _turn(
    turn: Mapping[str, Any], exchanges: Sequence[Exchange], script: Script, registry: Registry, tools: Mapping[str, Any]
) -> dict[str, Any]:
    shown: dict[str, Any] = {**asked_in(user_message(turn)), "said": said_in(exchanges)}
    if stopped := script.stopped(exchanges):
        shown["stopped"] = stopped
    if not _is_scored(turn):
        return shown
    word = turn.get("metric", "exact_match")
    metric = registry.metric(RENAMED.get(word, word))
    answer = answer_of(exchanges)
    prediction = predicted(answer, registry.rule(turn.get("post_process", "none")), metric)
    targets, extras = tuple(turn.get("targets", ())), turn.get("extras", {})
    score = apply_metric(metric, prediction, targets, {**tools, **extras} if metric.takes_calls else extras)
    value = share_of(score.value, word)
    passed = not stopped and is_at_least(value, extras.get("threshold", metric.threshold))
    fields = {"metric": word, "targets": [*targets], "prediction": score.prediction, "score": value, "passed": passed}
    unparsed = {"unparsed": True} if score.unparsed else {}
    return {**shown, **fields, **unparsed, **({"details": dict(score.details)} if score.details else {})}


def _is_scored(turn: Mapping[str, Any]) -> bool:
    """Return True if a turn is scored, because it has targets or a metric that needs no targets."""
    return "targets" in turn or "metric" in turn
