"""HumanEval as published: https://github.com/openai/human-eval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_lmeval.interop.files import program_task, text_of, write_programs

_INSTRUCTION = (
    "Complete the last function of this Python program. Reply with the whole program, imports and helper functions "
    "included, in one python code block."
)


def convert_humaneval(source: Path, destination: Path) -> list[Path]:
    """Write ``humaneval.jsonl`` and the canonical solutions as ``canonical.replay.jsonl``; return the two paths.

    ``source`` is ``HumanEval.jsonl``, or ``.jsonl.gz``: per line ``task_id``, ``prompt``, ``entry_point``,
    ``canonical_solution`` and ``test``. Raises UsageError for anything else, and for files that would be replaced.
    """
    return write_programs(source, destination, "humaneval", _made)


def _made(record: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    beginning = text_of(record, "prompt", place)
    tests, entry_point = text_of(record, "test", place), text_of(record, "entry_point", place)
    task = program_task(text_of(record, "task_id", place), f"{_INSTRUCTION}\n\n{beginning}", tests, entry_point)
    return task, beginning + text_of(record, "canonical_solution", place)
