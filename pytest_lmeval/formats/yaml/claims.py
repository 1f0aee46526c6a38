"""Recognize the YAML files of tasks and data sets by a quick search of their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable

ROOT_KEYS = ("definition", "icl_tasks", "mixture", "harness")
# The root of a data file has a key from each of these sets.
ROLES = (frozenset({"prompt"}), frozenset({"data", "rows"}), frozenset({"metric", "target", "targets", "checks"}))


def _keys(names: Iterable[str], before: bytes = b"") -> re.Pattern[bytes]:
    return re.compile(rb"^%s[\"']?(?:%s)[\"']?[ \t]*:" % (before, "|".join(names).encode()), re.MULTILINE)


# A key that may be at the root, even in braces. The loader skips a file without such a key, unless the command line
# names the file.
_ROOT_KEY = _keys(ROOT_KEYS, rb"[ {\t]*")
_ROLES = [_keys(role, rb"[ {\t]*") for role in ROLES]
_SURE_ROOT_KEY = _keys(ROOT_KEYS)
_SURE_ROLES = [_keys(role) for role in ROLES]
_TITLE = re.compile(rb"^(?:key|display_name)[ \t]*:", re.MULTILINE)
_DATA_SET = re.compile(rb"^(?:file_path|source)[ \t]*:", re.MULTILINE)
_KEY = re.compile(rb"^key[ \t]*:", re.MULTILINE)
_HARNESS = _keys(("dataset_path", "include", "output_type", "doc_to_text", "aggregate_metric_list", "group"))
_HARNESS_NAME = _keys(("task", "group"))


def has_root_key(data: bytes) -> bool:
    """Return True if the root of the YAML may have a task's key, or the keys of a data file."""
    return bool(_ROOT_KEY.search(data)) or all(role.search(data) for role in _ROLES)


def is_of_harness(data: bytes) -> bool:
    """Return True if the YAML looks like a task or a group of lm-evaluation-harness."""
    return bool(_HARNESS_NAME.search(data) and _HARNESS.search(data))


def is_data_set(data: bytes) -> bool:
    """Return True if the YAML looks like the description of a data set."""
    return bool(_KEY.search(data) and _DATA_SET.search(data))


def reads_like_a_task(data: bytes) -> bool:
    """Return True if the root of the YAML has a task's key, or the keys of a data file, without indentation."""
    return bool(_SURE_ROOT_KEY.search(data)) or all(role.search(data) for role in _SURE_ROLES)


def has_title(data: bytes) -> bool:
    """Return True if the YAML has the field ``key`` or ``display_name``, as every declarative task does."""
    return bool(_TITLE.search(data))
