"""The conversation of a compact record: what is asked first, how it goes on, and what its turns are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.compact import RENAMED, turn_is_scored
from pytest_lmeval.formats.tools import tools_of
from pytest_lmeval.formats.turning import MAX_ROUNDS, Script, answer_of, by_turn, from_table, said_in
from pytest_lmeval.postprocess import apply_metric, predicted, share_of
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Completion, Example, Exchange, Score


def tools_in(example: Example) -> dict[str, Any]:
    """Return the tools of a record, and how they are to be chosen, as a request takes them."""
    extras = example.metadata
    if "tools" not in extras:
        return {}
    return {"tools": tools_of(extras["tools"], "extras.tools"), "tool_choice": extras.get("tool_choice", "")}


def script_of(example: Example) -> Script:
    """Return what the user says, and what the tools answer."""
    extras = example.metadata
    respond = from_table(extras["responses"]) if "responses" in extras else None
    return Script([turn["user"] for turn in extras["turns"]], respond, extras.get("max_rounds", MAX_ROUNDS))


def score_turns(example: Example, response: Completion, registry: Registry) -> Score:
    """Return the share of the scored turns that pass, and every turn in the details."""
    script = script_of(example)
    talk = by_turn(response.exchanges)
    turns = example.metadata["turns"]
    if len(talk) != len(turns):
        raise ScoringError(f"{len(talk)} of {len(turns)} turns were asked")
    tools = {"tools": example.metadata["tools"]} if "tools" in example.metadata else {}
    found = [_turn(turn, exchanges, script, registry, tools) for turn, exchanges in zip(turns, talk, strict=True)]
    passed = [each["passed"] for each in found if "passed" in each]
    predictions = [each["prediction"] for each in found if "prediction" in each]
    unparsed = any(each.get("unparsed", False) for each in found)
    return Score(sum(passed) / len(passed), {"turns": found}, "\n".join(predictions), unparsed)


def _turn(
    turn: Mapping[str, Any],
    exchanges: Sequence[Exchange],
    script: Script,
    registry: Registry,
    tools: Mapping[str, Any],
) -> dict[str, Any]:
    shown: dict[str, Any] = {"user": turn["user"], "said": said_in(exchanges)}
    stopped = script.stopped(exchanges)
    if stopped:
        shown["stopped"] = stopped
    if not turn_is_scored(turn):
        return shown
    word = turn.get("metric", "exact_match")
    metric = registry.metric(RENAMED.get(word, word))
    answer = answer_of(exchanges)
    prediction = predicted(answer, registry.rule(turn.get("post_process", "none")), metric)
    targets, extras = tuple(turn.get("targets", ())), turn.get("extras", {})
    score = apply_metric(metric, prediction, targets, {**tools, **extras} if metric.takes_calls else extras)
    value = share_of(score.value, word)
    passed = not stopped and value >= extras.get("threshold", metric.threshold)
    fields = {
        "metric": word,
        "targets": list(targets),
        "prediction": score.prediction,
        "score": value,
        "passed": passed,
    }
    unparsed = {"unparsed": True} if score.unparsed or answer.has_no_answer else {}
    return {**shown, **fields, **unparsed, **({"details": dict(score.details)} if score.details else {})}
