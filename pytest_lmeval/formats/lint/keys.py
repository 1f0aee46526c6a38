"""Keys of ``metadata`` and ``extras`` that look like misspelt ones."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_lmeval.formats.hints import OF_COMPACT, WORDS, meant
from pytest_lmeval.formats.lint.warning import RULES, LintWarning
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task


def known_keys(registry: Registry) -> frozenset[str]:
    """Return the keys that a format or a metric reads, or that are a word of their own to a reader."""
    return WORDS.union(OF_COMPACT, *(metric.extras for metric in registry.metrics.values()))


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
        if wanted := meant(key, known):
            often = "" if counts[key] == 1 else f", in {counts[key]} records"
            detail = f"the key {key!r:.80}{often}: did you mean {wanted!r}? {RULES['misspelt_key']}"
            yield LintWarning(task.path, line, "misspelt_key", detail)
