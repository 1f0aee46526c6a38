"""Whether ledgers are all the shards of one run, each once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.dealt import check_dealt, check_whole
from pytest_lmeval.records.runfile import RunFile, examples_of

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
    check_dealt(shards)
    check_whole(shards)
    _check_spread(shards)
    _check_overlap(shards)


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
            raise UsageError(f"{parts[part].path} and {shard.path} are both shard {text}")
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
    for name in sorted({name for shard in shards for name in shard.infos}):
        held = [(shard, shard.infos[name]) for shard in shards if name in shard.infos]
        for field in ("path", "sha256", "metric", "available"):
            known = [(shard, getattr(info, field)) for shard, info in held if getattr(info, field) is not None]
            for shard, value in known[1:]:
                if value != known[0][1]:
                    at = f"{known[0][1]} in {known[0][0].path}, {value} in {shard.path}"
                    raise UsageError(f"task {name}: different {field}: {at}")


def _check_spread(shards: Sequence[RunFile]) -> None:
    # Examples are dealt out in turn: no shard has two more of a task than another.
    for name in sorted({name for shard in shards for name in shard.infos}):
        _check_even(name, [(shard, shard.infos.get(name)) for shard in shards])


def _check_even(name: str, infos: Sequence[tuple[RunFile, TaskInfo | None]]) -> None:
    counts = [(info.selected if info else 0, shard.path) for shard, info in infos]
    known = [(count, path) for count, path in counts if count is not None]
    if len(known) == len(counts) and max(known)[0] - min(known)[0] > 1:
        (most, there), (least, here) = max(known), min(known)
        raise UsageError(
            f"task {name}: {most} example(s) in {there} and {least} in {here}: these shards were not given the same "
            "tasks and options"
        )


def _check_overlap(shards: Sequence[RunFile]) -> None:
    seen: dict[tuple[str, str], RunFile] = {}
    twice = []
    for shard in shards:
        for result in examples_of(shard):
            other = seen.setdefault((result.task, result.id), shard)
            if other is not shard:
                twice.append(f"{result.id} of {result.task} in {other.path} and {shard.path}")
    if twice:
        more = f", and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
        raise UsageError(f"{len(twice)} example(s) in two shards: {', '.join(twice[:_SHOWN])}{more}")


def _short(value: Any) -> str:
    return f"{value!r:.200}"
