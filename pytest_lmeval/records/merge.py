"""The shards of one run joined: the results, tasks and facts of the run as if it had never been split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts
from pytest_lmeval.leaderboard.quarantine import status_under
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.ledger import ending
from pytest_lmeval.records.ledger_lines import ledger_line, result_line
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.records.shards import check_shards
from pytest_lmeval.types import ExampleResult, Status


def merge(shards: Sequence[RunFile]) -> RunFile:
    """Return the run that ``shards`` are all the parts of, under the path of the first.

    Raises UsageError where :func:`check_shards` does.
    """
    check_shards(shards)
    infos = _infos(shards)
    return replace(
        shards[0],
        facts=_facts(shards, infos),
        complete=all(shard.complete for shard in shards),
        infos=infos,
        results=tuple(result for shard in shards for result in examples_of(shard)),
        digest="",
        # Those of the parts cannot be joined.
        aggregates={},
        damaged=0,
    )


def judged(results: Iterable[ExampleResult], mode: str, recorded: str = "") -> tuple[ExampleResult, ...]:
    """Return the results with the status that a run under the gate ``mode`` gives them.

    ``recorded`` is the mode of the run that they are from: what was ``below`` there though it would have failed was
    excused by a mark such as xfail, and stays so.
    """
    return tuple(replace(result, status=_status(result, mode, recorded)) for result in results)


def ledger_of(run: RunFile, board: Leaderboard) -> bytes:
    """Return the ledger of a run that ended with ``board``."""
    header = {"timestamp": run.timestamp, "asking": run.asking, "manifest": run.manifest}
    lines = [ledger_line("header", header), *(result_line(result.to_json()) for result in examples_of(run))]
    end = ending(board, run.infos.values(), run.aggregates)
    return b"".join(lines + [ledger_line(kind, fields) for kind, fields in end.items()])


def _status(result: ExampleResult, mode: str, recorded: str) -> Status:
    excused = bool(recorded) and result.status == "below" and status_under(result, recorded) == "failed"
    fixed = result.score is None or result.status == "quarantined" or excused
    return result.status if fixed else status_under(result, mode)


def _infos(shards: Sequence[RunFile]) -> dict[str, TaskInfo]:
    infos: dict[str, TaskInfo] = {}
    for shard in shards:
        for name, info in shard.infos.items():
            held = infos.get(name)
            infos[name] = info if held is None else _joined(held, info)
    return {name: replace(info, shard={}) for name, info in infos.items()}


def _joined(one: TaskInfo, other: TaskInfo) -> TaskInfo:
    selected = None if one.selected is None or other.selected is None else one.selected + other.selected
    sha256, available = one.sha256 or other.sha256, one.available if other.available is None else other.available
    return replace(one, sha256=sha256, available=available, selected=selected)


def _facts(shards: Sequence[RunFile], infos: Mapping[str, TaskInfo]) -> RunFacts:
    facts = [shard.facts for shard in shards]
    manifest = {**facts[0].manifest, "shards": len(shards)}
    manifest.pop("shard_of", None)
    if isinstance(manifest.get("argv"), list):
        manifest["argv"] = list(_unsharded(manifest["argv"]))
    return replace(
        facts[0],
        timestamp=min(fact.timestamp for fact in facts),
        missing=[nodeid for fact in facts for nodeid in fact.missing],
        skipped=sum(fact.skipped for fact in facts),
        # Each shard may have had as many as the whole: to add them up would permit more than anybody asked for.
        max_errors=max(fact.max_errors for fact in facts),
        selection=_selection(facts[0].selection, infos),
        remarks=list(dict.fromkeys(remark for fact in facts for remark in fact.remarks)),
        bad_records=list(dict.fromkeys(fault for fact in facts for fault in fact.bad_records)),
        gate=_gate(facts),
        manifest=manifest,
        finished=all(fact.finished for fact in facts),
        interruptions=[f"{shard.path}: {reason}" for shard in shards for reason in shard.facts.interruptions],
        failures=[failure for fact in facts for failure in fact.failures],
        reruns=sum(fact.reruns for fact in facts),
    )


def _gate(facts: Sequence[RunFacts]) -> Mapping[str, Any] | None:
    # The gate's verdict on a part does not hold for the whole; the mode that judged the examples does.
    modes = {(fact.gate or {}).get("mode") for fact in facts}
    return {"mode": modes.pop()} if len(modes) == 1 else None


def _selection(selection: Mapping[str, Any], infos: Mapping[str, TaskInfo]) -> dict[str, Any]:
    tasks = {name: {"available": info.available, "selected": info.selected} for name, info in infos.items()}
    others = {name: value for name, value in selection.items() if name not in ("shard", "tasks")}
    whole = all(count["available"] == count["selected"] for count in tasks.values())
    # A task of which no shard has anything was left out all the same.
    untouched = {name: count for name, count in selection.get("tasks", {}).items() if name not in infos}
    return {} if whole and not untouched else {**others, "tasks": {**untouched, **tasks}}


def _unsharded(argv: Sequence[str]) -> Iterator[str]:
    follows = False
    for argument in argv:
        if not follows and not argument.startswith("--lm-shard="):
            follows = argument == "--lm-shard"
            if not follows:
                yield argument
        else:
            follows = False
