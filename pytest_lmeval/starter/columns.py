"""Find the question and answer columns in a file of rows, and detect labels and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_lmeval.data.rows import BadRows, read_rows
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.asked import ANSWERS, QUESTIONS
from pytest_lmeval.numbers import is_whole

SUFFIXES = (".csv", ".jsonl", ".parquet")
_MOST_LABELS = 12
_LABEL = re.compile(r"[^{}%#\n]{1,40}")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,64}")
_NUMBER = re.compile(r"\s*[-+]?\d[\d,]{0,30}(\.\d{1,30})?\s*")


@dataclass(frozen=True, slots=True)
class QuestionRows:
    """A file of rows: the names of its question and answer columns, and all answers as text.

    ``id`` is a template that gives each row a unique id. ``id`` is "" if the file has a suitable column ``id``, and
    None if no template is unique.
    """

    path: Path
    question: str
    answer: str
    answers: tuple[str, ...]
    id: str | None

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct answers if there are only a few, as in a classification, otherwise an empty tuple."""
        labels = tuple(sorted(dict.fromkeys(self.answers)))
        are_labels = len(labels) <= min(_MOST_LABELS, len(self.answers) // 2)
        # Labels become part of a template and a prompt, so they must be simple.
        return labels if are_labels and all(_LABEL.fullmatch(label) for label in labels) else ()

    @property
    def are_numbers(self) -> bool:
        """True if every answer is a number."""
        return all(_NUMBER.fullmatch(answer) for answer in self.answers)


def read_columns(path: Path, question: str = "", answer: str = "") -> QuestionRows:
    """Read a file of rows; ``question`` and ``answer`` name the columns if these have unusual names.

    Raises UsageError if the file cannot be read, has no rows, or has no unambiguous question or answer column.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(f"--from {path}: expected a file that ends in {', '.join(SUFFIXES)}")
    try:
        rows, _ = read_rows(path)
    except BadRows as error:
        raise UsageError(f"--from {path}: {error}") from None
    except OSError as error:
        raise UsageError(f"--from {path}: cannot be read: {error.strerror}") from None
    if not rows:
        raise UsageError(f"--from {path}: has no rows")
    columns = list(rows[0])
    asked = _column(path, columns, question, "question", QUESTIONS)
    wanted = _column(path, [name for name in columns if name != asked], answer, "answer", ANSWERS)
    answers = tuple(str(row.get(wanted, "")) for row in rows)
    others = [name for name in columns if name not in (asked, wanted)]
    return QuestionRows(path, asked, wanted, answers, _id_of(rows, [*others, asked]))


def _id_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str | None:
    """Return ``QuestionRows.id``: the column ``id``, else another column of short, unique strings, else a hash."""
    if _are_names([row.get("id") for row in rows]):
        return ""
    for name in columns:
        if name.isascii() and name.isidentifier() and _are_names([row.get(name) for row in rows]):
            return f"{{{{ {name} }}}}"
    are_others = len({json.dumps(row, sort_keys=True, default=str) for row in rows}) == len(rows)
    return "{{ row | hash }}" if are_others and not any("row" in row for row in rows) else None


def _are_names(cells: Sequence[Any]) -> bool:
    names = [str(cell) for cell in cells if isinstance(cell, str) or is_whole(cell)]
    are_short = all(_NAME.fullmatch(name) and name.strip() for name in names)
    return are_short and len({*names}) == len(cells)


def _column(path: Path, columns: Sequence[str], given: str, meaning: str, usual: Collection[str]) -> str:
    found = [given] if given in columns else [name for name in columns if not given and name.lower() in usual]
    if len(found) != 1:
        raise UsageError(
            f"--from {path}: which column is the {meaning}? --{meaning} COLUMN (columns: {', '.join(columns)})"
        )
    return found[0]
