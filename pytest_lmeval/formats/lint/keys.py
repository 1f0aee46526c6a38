"""Keys of ``metadata`` and ``extras`` that look like misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from pytest_lmeval.formats.lint.warning import RULES, LintWarning
from pytest_lmeval.formats.task import Task

__all__ = ["KNOWN_KEYS", "misspelt_keys"]

KNOWN_KEYS = frozenset(
    {
        *(
            "category",
            "cluster",
            "difficulty",
            "must_pass",
            "post_process",
            "subject",
            "tags",
            "threshold",
            "timeout_s",
        ),
        *("entry_point", "io_pairs", "stdouts", "tests"),
        *("columns", "json_schema", "separator"),
    }
)
"""The keys that a format or a metric of this package reads, or that are a word of their own to a reader."""

_ALIKE = 0.8


def misspelt_keys(task: Task) -> Iterator[LintWarning]:
    """Yield a warning for every key, once, that is nearly one of KNOWN_KEYS: other keys are the author's own."""
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    for example in task.examples:
        for key in example.metadata:
            first.setdefault(key, example.line)
            counts[key] = counts.get(key, 0) + 1
    for key, line in first.items():
        if meant := _meant(key):
            often = "" if counts[key] == 1 else f", in {counts[key]} records"
            detail = f"the key {key!r:.80}{often}: did you mean {meant!r}? {RULES['misspelt_key']}"
            yield LintWarning(task.path, line, "misspelt_key", detail)


def _meant(key: str) -> str:
    if key in KNOWN_KEYS:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    near = difflib.get_close_matches(plain, sorted(KNOWN_KEYS), n=1, cutoff=_ALIKE)
    return near[0] if near else ""
