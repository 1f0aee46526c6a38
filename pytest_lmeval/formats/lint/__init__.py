"""Warn about parts of task files that are valid but look like mistakes; each warning has a place and a meaning.

Checks take about linear time: seconds for ten thousand records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from pytest_lmeval.formats.checks import OF_COMPACT, WORDS, misspelt_keys
from pytest_lmeval.formats.lint.rules import answers_given_away, near_duplicates, overlaps, skewed_answers
from pytest_lmeval.formats.lint.warning import RULES, LintWarning
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task

# Many data sets have this key, which resembles a key of one metric. Records of that metric refuse it.
_ORDINARY = ("level",)
__all__ = ["LintWarning", "known_keys", "lint"]


def lint(files: Mapping[Path, LoadedFile], registry: Registry) -> list[LintWarning]:
    """Return the warnings about the valid records of ``files``, by file and line."""
    tasks = [task for loaded in files.values() for task in loaded.tasks]
    found = chain.from_iterable(
        chain(
            near_duplicates(task),
            skewed_answers(task, registry),
            answers_given_away(task, registry),
            _misspelt(task, known_keys(registry)),
        )
        for task in tasks
    )
    order = {path: number for number, path in enumerate(files)}
    everything = [*found, *overlaps(tasks)]
    return sorted(everything, key=lambda warning: (order.get(warning.path, 0), warning.line_number, warning.rule))


def known_keys(registry: Registry) -> frozenset[str]:
    """Return the keys that a format or a metric reads, and common words that are no mistakes."""
    return WORDS.union(_ORDINARY, OF_COMPACT, *(metric.extras for metric in registry.metrics.values()))


def _misspelt(task: Task, known: frozenset[str]) -> Iterator[LintWarning]:
    """Yield a warning for each key that resembles a known key."""
    for line, key, wanted, count in misspelt_keys(task.examples, lambda _: known):
        often = "" if count == 1 else f", in {count} records"
        detail = f"the key {key!r:.80}{often}: did you mean {wanted!r}? {RULES['misspelt_key']}"
        yield LintWarning(task.path, line, "misspelt_key", detail)
