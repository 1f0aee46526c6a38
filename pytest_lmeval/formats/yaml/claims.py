"""Which YAML files are a task's, or a data set's, by a cheap look at their bytes."""

from __future__ import annotations

import re

ROOT_KEYS = ("definition", "icl_tasks", "mixture", "harness")
# A cheap look that passes every file with such a key at its root: other people's files cost no parser, and may hold
# what this one refuses.
_ROOT_KEY = re.compile(rb"^[ {\t]*[\"']?(?:definition|icl_tasks|mixture|harness)[\"']?[ \t]*:", re.MULTILINE)
_SURE_ROOT_KEY = re.compile(rb"^[\"']?(?:definition|icl_tasks|mixture|harness)[\"']?[ \t]*:", re.MULTILINE)
# A data file has a key of each of these at its root.
ROLES = (frozenset({"prompt"}), frozenset({"data", "rows"}), frozenset({"metric", "target", "targets", "checks"}))
_ROLES = [re.compile(rb"^[ {\t]*[\"']?(?:%s)[\"']?[ \t]*:" % "|".join(role).encode(), re.MULTILINE) for role in ROLES]
_SURE_ROLES = [re.compile(rb"^[\"']?(?:%s)[\"']?[ \t]*:" % "|".join(role).encode(), re.MULTILINE) for role in ROLES]
_TITLE = re.compile(rb"^(?:key|display_name)[ \t]*:", re.MULTILINE)
_DATA_SET = re.compile(rb"^(?:file_path|source)[ \t]*:", re.MULTILINE)
_KEY = re.compile(rb"^key[ \t]*:", re.MULTILINE)
_HARNESS = re.compile(
    rb"^[\"']?(?:dataset_path|include|output_type|doc_to_text|aggregate_metric_list|group)[\"']?[ \t]*:", re.M
)
_HARNESS_NAME = re.compile(rb"^[\"']?(?:task|group)[\"']?[ \t]*:", re.MULTILINE)


def has_root_key(data: bytes) -> bool:
    """Tell whether a task's key, or those of a data file, may be at the root of the YAML, be it in braces."""
    return bool(_ROOT_KEY.search(data)) or all(role.search(data) for role in _ROLES)


def is_of_harness(data: bytes) -> bool:
    """Tell by a quick search whether a YAML file is a task or a group of lm-evaluation-harness."""
    return bool(_HARNESS_NAME.search(data) and _HARNESS.search(data))


def is_data_set(data: bytes) -> bool:
    """Tell by a quick search whether a YAML file describes a data set, which is not a task itself."""
    return bool(_KEY.search(data) and _DATA_SET.search(data))


def reads_like_a_task(data: bytes) -> bool:
    """Tell by a cheap look whether YAML has a task's key at its root, or those of a data file."""
    return bool(_SURE_ROOT_KEY.search(data)) or all(role.search(data) for role in _SURE_ROLES)


def has_title(data: bytes) -> bool:
    """Tell by a quick search whether a YAML file has what each task has beside its root key: a key, or a title."""
    return bool(_TITLE.search(data))
