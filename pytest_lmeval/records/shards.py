"""The shards of one run: whether they are all there, each once, and the run as if it had never been split."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.ledger import ending, ledger_line, result_line
from pytest_lmeval.records.receipt import RUN_ID, named_run
from pytest_lmeval.records.runfile import RunFile, examples_of, read_run

_SHARD = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")
_SHOWN = 5


def check_shards(shards: Sequence[RunFile]) -> None:
    """Raise UsageError that names the file and what is wrong.

    That is: a file that is no ledger, no shard or not at its end, or whose results do not give the digest that it
    states; one of 1..N missing or given twice, different N; adapters, options, repeats, sandbox levels, selections or
    task files that differ; a task that is not spread over the shards; an example in two of
    them, or in none.
    """
    for shard in shards:
        _check_ended(shard)
    _check_parts(shards)
    for name, of in _SETTINGS.items():
        _check_same(shards, name, of)
    _check_tasks(shards)
    _check_dealt(shards)
    holders = _holders(shards)
    _check_whole(shards, holders)
    _check_spread(shards)
    _check_overlap(shards, holders)


_SETTINGS: dict[str, Callable[[RunFile], Any]] = {
    "adapters": lambda run: run.adapter,
    "adapter options": lambda run: run.adapter_options,
    "--lm-repeats": lambda run: run.manifest.get("repeats"),
    "--lm-sandbox": lambda run: run.manifest.get("sandbox"),
    "--lm-think-tags": lambda run: run.manifest.get("think_tags"),
    "selections": lambda run: {key: run.selection[key] for key in run.selection if key not in ("shard", "tasks")},
}


def _check_ended(shard: RunFile) -> None:
    if shard.kind != "ledger":
        raise UsageError(f"{shard.path}: a leaderboard; name the shards' ledger.jsonl files")
    if not shard.digest:
        raise UsageError(f"{shard.path}: its run did not come to its end; complete it with --lm-resume")
    if not shard.agrees and shard.damaged:
        raise UsageError(
            f"{shard.path}:{shard.first_damaged}: {shard.damaged} line(s) from here on could not be read: torn or "
            "changed; run this shard again without --lm-resume"
        )
    if not shard.agrees:
        raise UsageError(
            f"{shard.path}: its results do not give the digest in its footer: it was changed, or resumed with other "
            "examples; run this shard again without --lm-resume"
        )
    if "shard" not in shard.selection:
        raise UsageError(f"{shard.path}: no shard: its run was not given --lm-shard I/N")


def _check_parts(shards: Sequence[RunFile]) -> None:
    parts: dict[int, RunFile] = {}
    counts: dict[int, RunFile] = {}
    for shard in shards:
        text = str(shard.selection["shard"])
        found = _SHARD.fullmatch(text)
        if found is None or int(found[1]) > int(found[2]):
            raise UsageError(f"{shard.path}: selection.shard: expected I/N, got {text!r:.80}")
        part, count = int(found[1]), int(found[2])
        counts.setdefault(count, shard)
        if len(counts) > 1:
            held = " and ".join(f"{run.path} is shard {run.selection['shard']}" for run in counts.values())
            raise UsageError(f"{held}: not parts of one run")
        if part in parts:
            of_two = "; they are of two models: name the report dirs" if shard.adapter != parts[part].adapter else ""
            raise UsageError(f"{parts[part].path} and {shard.path} are both shard {text}{of_two}")
        parts[part] = shard
    (count,) = counts
    if len(parts) < count:
        missing = [part for part in range(1, min(count, len(parts) + _SHOWN) + 1) if part not in parts]
        named = ", ".join(f"{part}/{count}" for part in missing[:_SHOWN])
        raise UsageError(f"{count - len(parts)} of {count} shards missing: {named}")


def _check_same(shards: Sequence[RunFile], name: str, of: Callable[[RunFile], Any]) -> None:
    first = shards[0]
    for shard in shards[1:]:
        if of(shard) != of(first):
            raise UsageError(
                f"different {name}: {_short(of(first))} in {first.path}, {_short(of(shard))} in {shard.path}"
            )


def _check_tasks(shards: Sequence[RunFile]) -> None:
    for name in _names(shards):
        held = [(shard, shard.infos[name]) for shard in shards if name in shard.infos]
        for field in ("path", "sha256", "metric", "available"):
            known = [(shard, getattr(info, field)) for shard, info in held if getattr(info, field) is not None]
            for shard, value in known[1:]:
                if value != known[0][1]:
                    at = f"{known[0][1]} in {known[0][0].path}, {value} in {shard.path}"
                    raise UsageError(f"task {name}: different {field}: {at}")


def _check_spread(shards: Sequence[RunFile]) -> None:
    # Examples are dealt out in turn: no shard has two more of a task than another.
    for name in _names(shards):
        infos = [(shard.infos.get(name), shard.path) for shard in shards]
        counts = [(info.selected if info else 0, path) for info, path in infos]
        known = [(count, path) for count, path in counts if count is not None]
        (most, there), (least, here) = max(known, default=(0, "")), min(known, default=(0, ""))
        if len(known) == len(counts) and most - least > 1:
            raise UsageError(
                f"task {name}: {most} example(s) in {there} and {least} in {here}: these shards were not given the "
                "same tasks and options"
            )


def _names(shards: Sequence[RunFile]) -> list[str]:
    return sorted({name for shard in shards for name in shard.infos})


_Holders = Mapping[str, Mapping[str, RunFile]]
"""By task and id, the first shard that has a result of the example."""


def _holders(shards: Sequence[RunFile]) -> _Holders:
    holders: dict[str, dict[str, RunFile]] = {}
    for shard in shards:
        for result in examples_of(shard):
            holders.setdefault(result.task, {}).setdefault(result.id, shard)
    return holders


def _check_overlap(shards: Sequence[RunFile], holders: _Holders) -> None:
    twice = [
        f"{result.id} of {result.task} in {other.path} and {shard.path}"
        for shard in shards
        for result in examples_of(shard)
        if (other := holders[result.task][result.id]) is not shard
    ]
    if twice:
        raise UsageError(f"{counted(twice)} in two shards")


def _short(value: Any) -> str:
    return f"{value!r:.200}"


def _check_dealt(shards: Sequence[RunFile]) -> None:
    """Raise UsageError that names the examples of which the shards were not all dealt."""
    for name in _names(shards):
        held = [(shard, shard.infos[name].shard) for shard in shards if name in shard.infos]
        # Earlier versions did not record it.
        held = [(shard, dealt) for shard, dealt in held if dealt]
        for shard, dealt in held[1:]:
            first, whole = held[0]
            if dealt != whole:
                said = _difference(whole["ids"], dealt["ids"], str(first.path), str(shard.path))
                raise UsageError(
                    f"task {name}: the shards were not dealt from the same examples: {said}. Some examples may be in "
                    "no shard: give the examples ids that are the same in each process, and run all shards again"
                )


def _check_whole(shards: Sequence[RunFile], holders: _Holders) -> None:
    """Raise UsageError that names the examples which were dealt out and have no result in any shard."""
    dealt: dict[str, set[str]] = {}
    for shard in shards:
        for name, info in shard.infos.items():
            dealt.setdefault(name, set()).update(info.shard.get("ids", ()))
    lost = [f"{id} of {name}" for name in sorted(dealt) for id in sorted(dealt[name] - holders.get(name, {}).keys())]
    # A test that was skipped, or is missing, has no result either; its shard says how many there are.
    if len(lost) > sum(shard.facts.skipped + len(shard.facts.missing) for shard in shards):
        raise UsageError(
            f"no shard has {counted(lost)}, of {sum(map(len, dealt.values()))} that were selected: something left "
            "them out after the shards were dealt; run all shards again with the same plugins and options"
        )


def _difference(one: Sequence[str], other: Sequence[str], here: str, there: str) -> str:
    alone = [(sorted({*one} - {*other}), here), (sorted({*other} - {*one}), there)]
    parts = [f"{counted(ids)} only in {path}" for ids, path in alone if ids]
    return "; ".join(parts) or asks_else(here, there)


def asks_else(here: str, there: str) -> str:
    """Return the sentence about two parts of one run whose examples have the same ids and different contents."""
    return f"the same ids ask something else in {here} and in {there}"


def counted(names: Sequence[str]) -> str:
    """Return how many examples there are, with the names of the first."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} example{'s' if len(names) > 1 else ''} ({', '.join(names[:_SHOWN])}{more})"


def read_shards(paths: Iterable[Path]) -> list[RunFile]:
    """Return the runs of the ledgers; raise UsageError as :func:`read_run` does.

    Every shard records all the ids that were dealt out: equal ones are held once.
    """
    dealt: dict[str, Mapping[str, Any]] = {}
    return [replace(run, infos=_sharing(run.infos, dealt)) for run in map(read_run, paths)]


def _sharing(infos: Mapping[str, TaskInfo], dealt: dict[str, Mapping[str, Any]]) -> dict[str, TaskInfo]:
    known = {name: dealt.setdefault(name, info.shard) for name, info in infos.items()}
    return {
        name: replace(info, shard=known[name]) if known[name] == info.shard else info for name, info in infos.items()
    }


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


def ledger_of(run: RunFile, board: Leaderboard) -> Iterator[bytes]:
    """Yield the lines of the ledger of a run that ended with ``board``."""
    yield ledger_line("header", {"timestamp": run.timestamp, "asking": run.asking, "manifest": run.manifest})
    for result in examples_of(run):
        yield result_line(result.to_json())
    for kind, fields in ending(board, run.infos.values(), run.aggregates).items():
        yield ledger_line(kind, fields)


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
    manifest = {**facts[0].manifest, "shards": len(shards), **_max_cost(facts)}
    for of_a_part in ("shard_of", "run_id"):
        manifest.pop(of_a_part, None)
    manifest |= named_run(given) if (given := os.environ.get(RUN_ID)) else {}
    if isinstance(manifest.get("argv"), list):
        manifest["argv"] = _unsharded(manifest["argv"])
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


def _max_cost(facts: Sequence[RunFacts]) -> dict[str, Any]:
    # Each shard had a limit of its own.
    limited = [fact.manifest["max_cost"] for fact in facts if isinstance(fact.manifest.get("max_cost"), dict)]
    if len(limited) < len(facts):
        return {}
    return {"max_cost": {name: sum(each.get(name, 0) for each in limited) for name in ("limit", "before", "spent")}}


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


def _unsharded(argv: Sequence[str]) -> list[str]:
    """Return the arguments without ``--lm-shard``, whose value may be an argument of its own."""
    pairs = zip(("", *argv), argv, strict=False)
    return [each for before, each in pairs if "--lm-shard" not in (before, each) and not each.startswith("--lm-shard=")]
