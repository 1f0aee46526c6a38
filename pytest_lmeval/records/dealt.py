"""Whether shards were dealt from the same examples, and together hold them all."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile, examples_of

_SHOWN = 5


def check_dealt(shards: Sequence[RunFile]) -> None:
    """Raise UsageError that names the examples of which the shards were not all dealt."""
    for name in sorted({name for shard in shards for name in shard.infos}):
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


def check_whole(shards: Sequence[RunFile]) -> None:
    """Raise UsageError that names the examples which were dealt out and have no result in any shard."""
    dealt = {(name, id) for shard in shards for name, info in shard.infos.items() for id in info.shard.get("ids", ())}
    present = {(result.task, result.id) for shard in shards for result in examples_of(shard)}
    lost = [f"{id} of {name}" for name, id in sorted(dealt - present)]
    # A test that was skipped, or is missing, has no result either; its shard says how many there are.
    if len(lost) > sum(shard.facts.skipped + len(shard.facts.missing) for shard in shards):
        raise UsageError(
            f"no shard has {_counted(lost)}, of {len(dealt)} that were selected: something left them out after the "
            "shards were dealt; run all shards again with the same plugins and options"
        )


def _difference(one: Sequence[str], other: Sequence[str], here: str, there: str) -> str:
    alone = [(sorted({*one} - {*other}), here), (sorted({*other} - {*one}), there)]
    parts = [f"{_counted(ids)} only in {path}" for ids, path in alone if ids]
    return "; ".join(parts) or f"the same ids ask something else in {here} and in {there}"


def _counted(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} example{'s' if len(names) > 1 else ''} ({', '.join(names[:_SHOWN])}{more})"
