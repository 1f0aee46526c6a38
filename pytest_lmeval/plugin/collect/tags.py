"""Tags of examples as marks, for ``-m``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

# What ``-m`` reads as one name.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS = frozenset({"and", "or", "not", "True", "False", "None"})
# Whatever an ini file says: a task file must not decide whether a test runs.
_BUILT_IN = frozenset({"filterwarnings", "lmeval", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
_IN_INI = pytest.StashKey[frozenset[str]]()
_OURS = pytest.StashKey[dict[str, bool]]()


def note_ini_marks(config: pytest.Config) -> None:
    """Note which marks the ini file names, before any plugin adds those that mean something to it."""
    config.stash[_IN_INI] = _names(config)


def mark_by_tags(item: pytest.Item, tags: Iterable[str]) -> None:
    """Mark ``item`` with those of its tags that can be marks: names that ``-m`` reads, and no plugin's own mark."""
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
    # Otherwise pytest would warn of it, or refuse it where marks are strict.
    config.addinivalue_line("markers", f"{tag}: a tag of examples (set by pytest-lmeval)")
    return True


def _names(config: pytest.Config) -> frozenset[str]:
    return frozenset(re.split(r"[:(]", line, maxsplit=1)[0].strip() for line in config.getini("markers"))
