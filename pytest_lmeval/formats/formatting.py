"""Hash each task's first prompt in every chat format, to detect changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import encode_json, write_atomically
from pytest_lmeval.errors import UsageError
from pytest_lmeval.formatters import FORMATTERS
from pytest_lmeval.task import Task, render
from pytest_lmeval.types import Generate, Message

FILE = "formatting.json"
"""The name of the file with the hashes, in the tasks' folder."""
SCHEMA = "pytest-lmeval/formatting/1"

Hashes = Mapping[str, Mapping[str, str]]
"""The SHA-256 of a task's first prompt, by task and formatter."""


def formatted(task: Task, formatter: str) -> str:
    """Return the prompt of the task's first example, as the named formatter writes it.

    The formatter ``concatenation`` writes the text for a model without chat roles.
    """
    prompt = render(task.examples[0])
    if formatter == "concatenation":
        return Generate(prompt).text
    return FORMATTERS[formatter]((Message("user", prompt),) if isinstance(prompt, str) else prompt)


def formatting_hashes(tasks: Iterable[Task]) -> dict[str, dict[str, str]]:
    """Return the hashes of all ``tasks`` for every formatter that needs no model."""

    def sha256(text: str) -> str:
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    return {task.name: {formatter: sha256(formatted(task, formatter)) for formatter in FORMATTERS} for task in tasks}


def read_hashes(path: Path) -> Hashes:
    """Return the hashes in the file at ``path``, or {} if it is missing; raise UsageError for any invalid file."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as recorded hashes of prompts: {error}") from None
    if not _is_recorded(document):
        expected = f'"schema": "{SCHEMA}" and "prompts" with hashes by task and formatter'
        raise UsageError(f"{path}: no recorded hashes of prompts; expected {expected}")
    return dict(document["prompts"])


def update_hashes(path: Path, hashes: Hashes) -> None:
    """Record ``hashes`` in the file at ``path``; other tasks keep their hashes."""
    prompts = {**read_hashes(path), **hashes}
    ordered = {task: dict(sorted(prompts[task].items())) for task in sorted(prompts)}
    write_atomically(path, encode_json({"schema": SCHEMA, "prompts": ordered}))


def _is_recorded(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return False
    prompts = document.get("prompts")
    return isinstance(prompts, dict) and all(
        isinstance(hashes, dict) and all(isinstance(each, str) for each in hashes.values())
        for hashes in prompts.values()
    )
