"""Check that shards make up a whole run, and merge them into one run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import RERUN_USAGE, SERVICE, Leaderboard, RunFacts, rerun_usage, run_usage
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.ledger import ending, ledger_line, result_line
from pytest_lmeval.records.receipt import RUN_ID, named_run
from pytest_lmeval.records.runfile import RunFile, examples_of, read_run
from pytest_lmeval.records.service import joined

_SHARD = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")
_SHOWN = 5


def check_shards(shards: Sequence[RunFile]) -> None:
    """Raise a UsageError that names the file and the problem if ``shards`` do not make up one whole run.

    Each file must be the ledger of a finished shard, and its results must match its digest. Each shard from 1 to N must
    be given exactly once. All shards must have the same adapter, options, repeats, sandbox level, selection and task
    files. Each example of a task must be in exactly one shard, and the shards must share the examples evenly.
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
    "adapter options": lambda run: run.facts.adapter_options,
    "--lm-repeats": lambda run: run.manifest.get("repeats"),
    "--lm-sandbox": lambda run: run.manifest.get("sandbox"),
    "--lm-think-tags": lambda run: run.manifest.get("think_tags"),
    "selections": lambda run: {key: run.selection[key] for key in run.selection if key not in ("shard", "tasks")},
}


def _check_ended(shard: RunFile) -> None:
    if shard.kind != "ledger":
        raise UsageError(f"{shard.path}: a leaderboard; name the shards' ledger.jsonl files")
    if not shard.digest:
        raise UsageError(f"{shard.path}: its run did not finish; complete it with --lm-resume")
    if not shard.agrees and shard.damaged:
        raise UsageError(
            f"{shard.path}:{shard.first_damaged}: {shard.damaged} unreadable line(s) from here on, cut or changed; "
            "rerun this shard without --lm-resume"
        )
    if not shard.agrees:
        raise UsageError(
            f"{shard.path}: its results do not match the digest in its footer: it was changed, or resumed with other "
            "examples; rerun this shard without --lm-resume"
        )
    if "shard" not in shard.selection:
        raise UsageError(f"{shard.path}: no shard: its run had no --lm-shard I/N")


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
            of_two = "; they are from two models: name the report dirs" if shard.adapter != parts[part].adapter else ""
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
                f"different {name}: {of(first)!r:.200} in {first.path}, {of(shard)!r:.200} in {shard.path}"
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
    # Examples are dealt to shards in rotation, so the shards' example counts for a task differ by at most 1.
    for name in _names(shards):
        infos = [(shard.infos.get(name), shard.path) for shard in shards]
        counts = [(info.selected if info else 0, path) for info, path in infos]
        known = [(count, path) for count, path in counts if count is not None]
        (most, there), (least, here) = max(known, default=(0, "")), min(known, default=(0, ""))
        if len(known) == len(counts) and most - least > 1:
            raise UsageError(
                f"task {name}: {most} example(s) in {there} and {least} in {here}: these shards had different tasks or "
                "options"
            )


def _names(shards: Sequence[RunFile]) -> list[str]:
    return sorted({name for shard in shards for name in shard.infos})


_Holders = Mapping[str, Mapping[str, RunFile]]
"""The first shard that has a result for an example, by task and id."""


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


def _check_dealt(shards: Sequence[RunFile]) -> None:
    """Raise UsageError if the shards were not dealt from the same examples; the message describes the difference."""
    for name in _names(shards):
        # Earlier versions did not record the ids of the dealt examples.
        infos = [(shard, shard.infos[name].shard) for shard in shards if name in shard.infos]
        held = [(shard, dealt) for shard, dealt in infos if dealt]
        for shard, dealt in held[1:]:
            first, whole = held[0]
            if dealt != whole:
                difference = _difference(whole["ids"], dealt["ids"], str(first.path), str(shard.path))
                raise UsageError(
                    f"task {name}: the shards were not dealt from the same examples: {difference}. Some examples may "
                    "be in no shard: give the examples ids that are the same in each process, and rerun all shards"
                )


def _check_whole(shards: Sequence[RunFile], holders: _Holders) -> None:
    """Raise UsageError if more dealt examples lack a result than the shards report as skipped or missing."""
    dealt: dict[str, set[str]] = {}
    for shard in shards:
        for name, info in shard.infos.items():
            dealt.setdefault(name, set()).update(info.shard.get("ids", ()))
    lost = [f"{id} of {name}" for name in sorted(dealt) for id in sorted(dealt[name] - holders.get(name, {}).keys())]
    # Skipped and missing tests have no result either, and each shard records how many it had.
    if len(lost) > sum(shard.facts.skipped + len(shard.facts.missing) for shard in shards):
        raise UsageError(
            f"no shard has {counted(lost)}, of {sum(map(len, dealt.values()))} that were selected: a plugin or hook "
            "dropped them after dealing; rerun all shards with the same plugins and options"
        )


def _difference(one: Sequence[str], other: Sequence[str], here: str, there: str) -> str:
    alone = [(sorted({*one} - {*other}), here), (sorted({*other} - {*one}), there)]
    parts = [f"{counted(ids)} only in {path}" for ids, path in alone if ids]
    return "; ".join(parts) or differing(here, there)


def differing(here: str, there: str) -> str:
    """Return a message saying that two parts of a run have different contents for the same example ids."""
    return f"the same ids have different contents in {here} and {there}"


def counted(names: Sequence[str]) -> str:
    """Return the number of examples and the first five names, as text."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} example{'s' if len(names) > 1 else ''} ({', '.join(names[:_SHOWN])}{more})"


def read_shards(paths: Iterable[Path]) -> list[RunFile]:
    """Read the shards' runs from their ledgers; raise UsageError as :func:`read_run` does.

    Each shard records all dealt ids; to save memory, equal records become one object.
    """
    dealt: dict[str, Mapping[str, Any]] = {}

    def shared(name: str, info: TaskInfo) -> TaskInfo:
        first = dealt.setdefault(name, info.shard)
        return replace(info, shard=first) if first == info.shard else info

    runs = map(read_run, paths)
    return [replace(run, infos={name: shared(name, info) for name, info in run.infos.items()}) for run in runs]


def merge(shards: Sequence[RunFile]) -> RunFile:
    """Merge ``shards`` into one run with the path of the first shard; raise UsageError as :func:`check_shards` does."""
    check_shards(shards)
    infos = _infos(shards)
    return replace(
        shards[0],
        facts=_facts(shards, infos),
        complete=all(shard.complete for shard in shards),
        infos=infos,
        results=tuple(result for shard in shards for result in examples_of(shard)),
        digest="",
        # The shards' aggregates cannot be combined.
        aggregates={},
        damaged=0,
        outside=joined(shard.outside for shard in shards),
    )


def ledger_of(run: RunFile, board: Leaderboard) -> Iterator[bytes]:
    """Yield the ledger lines of a run whose leaderboard is ``board``."""
    yield ledger_line("header", {"timestamp": run.timestamp, "asking": run.asking, "manifest": run.manifest})
    for result in examples_of(run):
        yield result_line(result.to_json())
    for kind, fields in ending(board, run.infos.values(), run.aggregates, outside=run.outside).items():
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
    if usage := run_usage(map(rerun_usage, facts)):
        manifest[RERUN_USAGE] = usage
    if outside := joined(shard.outside for shard in shards):
        manifest[SERVICE] = outside.sums
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
        # The limit applies to the whole run; a sum would allow more errors than the user did.
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
    # Each shard had its own limit.
    limited = [fact.manifest["max_cost"] for fact in facts if isinstance(fact.manifest.get("max_cost"), dict)]
    if len(limited) < len(facts):
        return {}
    return {"max_cost": {name: sum(each.get(name, 0) for each in limited) for name in ("limit", "before", "spent")}}


def _gate(facts: Sequence[RunFacts]) -> Mapping[str, Any] | None:
    # A shard's verdict does not apply to the whole run, but the mode of its gate does.
    modes = {(fact.gate or {}).get("mode") for fact in facts}
    return {"mode": modes.pop()} if len(modes) == 1 else None


def _selection(selection: Mapping[str, Any], infos: Mapping[str, TaskInfo]) -> dict[str, Any]:
    tasks = {name: {"available": info.available, "selected": info.selected} for name, info in infos.items()}
    others = {name: value for name, value in selection.items() if name not in ("shard", "tasks")}
    whole = all(count["available"] == count["selected"] for count in tasks.values())
    # A task without an example in any shard is still a deselected task.
    untouched = {name: count for name, count in selection.get("tasks", {}).items() if name not in infos}
    return {} if whole and not untouched else {**others, "tasks": {**untouched, **tasks}}


def _unsharded(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` without ``--lm-shard`` and its value."""
    pairs = zip(("", *argv), argv, strict=False)
    return [each for before, each in pairs if "--lm-shard" not in (before, each) and not each.startswith("--lm-shard=")]
