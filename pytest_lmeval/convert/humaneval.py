"""HumanEval as published: https://github.com/openai/human-eval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_lmeval.convert.files import encode_lines, fenced, read_records, text_of, write_new
from pytest_lmeval.errors import UsageError

_INSTRUCTION = (
    "Complete the last function of this Python program. Reply with the whole program, imports and helper functions "
    "included, in one python code block."
)


def convert_humaneval(source: Path, destination: Path) -> list[Path]:
    """Write ``humaneval.jsonl`` and the canonical solutions as ``canonical.replay.jsonl``; return the two paths.

    ``source`` is ``HumanEval.jsonl``, or ``.jsonl.gz``: per line ``task_id``, ``prompt``, ``entry_point``,
    ``canonical_solution`` and ``test``. Raises UsageError for anything else, and for files that would be replaced.
    """
    tasks: list[dict[str, Any]] = []
    canonical: list[dict[str, Any]] = []
    places: dict[str, str] = {}
    for place, record in read_records(source):
        task = _task_record(record, place)
        if task["id"] in places:
            raise UsageError(f"{place}: task_id {task['id']!r} was used at {places[task['id']]} already")
        places[task["id"]] = place
        tasks.append(task)
        program = record["prompt"] + text_of(record, "canonical_solution", place)
        canonical.append({"id": task["id"], "output": fenced(program)})
    return write_new(
        {
            destination / "humaneval.jsonl": encode_lines(tasks),
            destination / "canonical.replay.jsonl": encode_lines(canonical),
        }
    )


def _task_record(record: dict[str, Any], place: str) -> dict[str, Any]:
    tests, entry_point = text_of(record, "test", place), text_of(record, "entry_point", place)
    return {
        "id": text_of(record, "task_id", place),
        "prompt": f"{_INSTRUCTION}\n\n{text_of(record, 'prompt', place)}",
        # A record needs a target; what decides are the tests.
        "targets": ["check"],
        "metric": "code_exec",
        "extras": {"tests": tests, "entry_point": entry_point},
    }
