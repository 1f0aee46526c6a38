"""Whether the examples of all workers ask the same: ids alone do not say so, for rows without ids are numbered.

A worker reports the contents of each item together with its node id, when nothing was asked yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import pytest

from pytest_lmeval.plugin.collect.collected import Collected
from pytest_lmeval.plugin.collect.locate import is_example, is_function
from pytest_lmeval.plugin.private.items import parameters_of
from pytest_lmeval.plugin.private.workers import Worker, send_with_ids, worker_input
from pytest_lmeval.records.shards import asks_else, counted

_MARK = "lmeval-contents:"
_FIRST = pytest.StashKey[tuple[str, dict[str, str]]]()
"""The name of the first worker, and the hash of each of its examples by node id."""


def send_contents(session: pytest.Session, tasks: Collected) -> None:
    """Send a hash of the contents of each item with its node id, empty for what is no example."""
    kinds: dict[str, set[str]] = {}
    as_text: dict[str, Callable[[Any], str]] = {}

    def contents(item: Any) -> str:
        if not is_function(item):
            example = item.example
            return "\0".join([example.prompt, *example.targets])
        name = item.task.name
        if name not in as_text:
            from pytest_lmeval.functions.declare import json_values

            as_text[name] = json_values(kinds.setdefault(name, set()))
        return as_text[name](parameters_of(item))

    hashes = [_hash(contents(item)) if is_example(item) else "" for item in session.items]
    if any(hashes):
        send_with_ids(session.config, _MARK + json.dumps(hashes))
    if worker_input(session.config).get("workercount", 1) > 1:
        tasks.wanted.notes += [
            f"{name}: the workers' rows hold values that are no JSON ({', '.join(sorted(found))}), which were compared "
            "by their type alone"
            for name, found in sorted(kinds.items())
            if found
        ]


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def check_contents(config: pytest.Config, worker: Worker, ids: list[str]) -> None:
    """Take what a worker sent with its node ids off them.

    Raise UsageError if examples with the ids of the first worker's ask something else.
    """
    if not ids or not ids[-1].startswith(_MARK):
        return
    hashes: Sequence[str] = json.loads(ids.pop().removeprefix(_MARK))
    here, there = worker.gateway.id, {nodeid: each for nodeid, each in zip(ids, hashes, strict=True) if each}
    first, expected = config.stash.setdefault(_FIRST, (here, there))
    if others := [nodeid for nodeid, each in there.items() if expected.get(nodeid, each) != each]:
        raise pytest.UsageError(
            f"the workers collected different examples: {asks_else(first, here)}: {counted(others)}. Some might run "
            "twice and others never: make the data the same in each process (sort what comes from a set, seed what is "
            "drawn), or run without -n"
        )
