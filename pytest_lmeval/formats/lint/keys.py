"""Keys of ``metadata`` and ``extras`` that look like misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from pytest_lmeval.formats.lint.warning import RULES, LintWarning
from pytest_lmeval.formats.task import Task
from pytest_lmeval.registry import Registry

_OF_ANY_RECORD = frozenset(
    {"category", "cluster", "difficulty", "must_pass", "post_process", "quarantine", "subject", "tags", "threshold"}
)
_ALIKE = 0.8


def known_keys(registry: Registry) -> frozenset[str]:
    """Return the keys that a format or a metric reads, or that are a word of their own to a reader."""
    return _OF_ANY_RECORD.union(*(metric.extras for metric in registry.metrics.values()))


def misspelt_keys(task: Task, registry: Registry) -> Iterator[LintWarning]:
    """Yield a warning for every key, once, that is nearly a known one: other keys are the author's own."""
    known = known_keys(registry)
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    for example in task.examples:
        for key in example.metadata:
            first.setdefault(key, example.line)
            counts[key] = counts.get(key, 0) + 1
    for key, line in first.items():
        if meant := _meant(key, known):
            often = "" if counts[key] == 1 else f", in {counts[key]} records"
            detail = f"the key {key!r:.80}{often}: did you mean {meant!r}? {RULES['misspelt_key']}"
            yield LintWarning(task.path, line, "misspelt_key", detail)


def _meant(key: str, known: Collection[str]) -> str:
    if key in known:
        return ""
    plain = key.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    near = difflib.get_close_matches(plain, sorted(known), n=1, cutoff=_ALIKE)
    return near[0] if near else ""
