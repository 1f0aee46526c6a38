"""What is allowed in a task file and still looks like a mistake: warnings, each with its place and its meaning.

Every check is about linear in the number of records: ten thousand take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from pytest_lmeval.formats.lint.answers import skewed_answers
from pytest_lmeval.formats.lint.duplicates import near_duplicates
from pytest_lmeval.formats.lint.keys import misspelt_keys
from pytest_lmeval.formats.lint.leaks import answers_given_away, overlaps
from pytest_lmeval.formats.lint.warning import LintWarning
from pytest_lmeval.formats.task import LoadedFile
from pytest_lmeval.registry import Registry

__all__ = ["LintWarning", "lint"]


def lint(files: Mapping[Path, LoadedFile], registry: Registry) -> list[LintWarning]:
    """Return the warnings about the valid records of ``files``, by file and line. Bad records are left to others."""
    tasks = [task for loaded in files.values() for task in loaded.tasks]
    found = chain.from_iterable(
        chain(
            near_duplicates(task),
            skewed_answers(task, registry),
            answers_given_away(task, registry),
            misspelt_keys(task, registry),
        )
        for task in tasks
    )
    order = {path: number for number, path in enumerate(files)}
    everything = [*found, *overlaps(tasks)]
    return sorted(everything, key=lambda warning: (order.get(warning.path, 0), warning.line_number, warning.rule))
