"""Select examples by their tags (``-m``) and by ``--lm-shard I/N``."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from pytest_lmeval.plugin.collect.locate import is_example
from pytest_lmeval.plugin.common.report import add_to_report

# Names that ``-m`` can parse.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS = frozenset({"and", "or", "not", "True", "False", "None"})
# Task files must not control whether a test runs, even if the ini file lists these marks.
_BUILT_IN = frozenset({"filterwarnings", "lmeval", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
_IN_INI = pytest.StashKey[frozenset[str]]()
_OURS = pytest.StashKey[dict[str, bool]]()

_Key = tuple[str, str]
_ADDRESS = re.compile(r"[ -]at[ -]0x[0-9a-fA-F]+")


def note_ini_marks(config: pytest.Config) -> None:
    """Record the marks in the ini file before plugins add their own marks."""
    config.stash[_IN_INI] = _names(config)


def mark_by_tags(item: pytest.Item, tags: Iterable[str]) -> None:
    """Mark ``item`` with its tags, except tags that ``-m`` cannot parse and marks that plugins use."""
    known = item.config.stash.setdefault(_OURS, {})
    for tag in tags:
        if tag not in known:
            known[tag] = _may_be_a_mark(item.config, tag)
        if known[tag]:
            item.add_marker(tag)


def _may_be_a_mark(config: pytest.Config, tag: str) -> bool:
    if not _NAME.fullmatch(tag) or tag in _WORDS or tag in _BUILT_IN:
        return False
    if tag in config.stash.get(_IN_INI, frozenset()):
        return True
    if tag in _names(config):
        return False
    # Otherwise pytest would warn about the mark, or reject it in strict mode.
    config.addinivalue_line("markers", f"{tag}: a tag of examples (set by pytest-lmeval)")
    return True


def _names(config: pytest.Config) -> frozenset[str]:
    return frozenset(re.split(r"[:(]", line, maxsplit=1)[0].strip() for line in config.getini("markers"))


def keep_shard(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the examples in other shards; keep items that are not examples.

    An example's rank among the sorted (task, id) pairs of all selected examples determines its shard. Each example is
    therefore in exactly one shard. Raise pytest.UsageError if ids are ambiguous.
    """
    part, parts = config.option.lm_shard
    by_key: dict[_Key, Any] = {}
    for item in items:
        if is_example(item):
            _check_key(config, item, by_key.setdefault(_key(item), item))
    dealt = sorted(by_key)
    mine = set(dealt[part - 1 :: parts])
    _note(config, [by_key[key] for key in dealt])
    others = [item for item in items if is_example(item) and _key(item) not in mine]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not is_example(item) or _key(item) in mine]


def _key(item: Any) -> _Key:
    return item.task.name, item.example.id


def _check_key(config: pytest.Config, item: Any, first: Any) -> None:
    name, id = _key(item)
    reason = ""
    if first is not item and getattr(first, "label", "") == getattr(item, "label", ""):
        reason = f"two examples of {name} have the id {id!r} ({first.nodeid}, {item.nodeid})"
    elif _ADDRESS.search(id):
        reason = f"the id {id!r} of an example of {name} contains a memory address, which differs in each process"
    if reason:
        message = f"--lm-shard: {reason}; shards need a unique id for each example: give ids"
        add_to_report(config, usage_error=message)
        raise pytest.UsageError(message)


def _note(config: pytest.Config, examples: Sequence[Any]) -> None:
    """Record each task's examples in all shards, so that lmeval merge can check them."""
    from pytest_lmeval.plugin.collect.collected import collected

    by_task: dict[str, list[Any]] = defaultdict(list)
    for item in examples:
        by_task[item.task.name].append(item.example)
    tasks = collected(config).tasks
    for name, found in by_task.items():
        texts = json.dumps([[each.id, str(each.prompt)] for each in found])
        shard = {"ids": [each.id for each in found], "sha256": sha256(texts.encode("ascii")).hexdigest()}
        tasks[name] = replace(tasks[name], shard=shard)
