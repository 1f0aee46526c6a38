"""Task files in a folder of their own, loaded as a run loads them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.files import load_file
from pytest_lmeval.formats.task import LoadedFile, LoadOptions
from pytest_lmeval.loading import default_registry

HEAD = "from pytest_lmeval.tasks import *\n"
# A class that is right in every respect; tests change one thing about it.
QUIZ = """
class Quiz(BaseTask[str]):
    NAME = "quiz"
    DATASET_PATH = "quiz.jsonl"
    SAMPLE_SPLIT = "test"
    FEWSHOT_SPLIT = "train"
    METRICS = [AccuracyCompletion]

    def _get_instruction_text(self, item):
        return f"Q: {item['q']}"

    def _get_ground_truth(self, item):
        return item["a"]
"""
ROWS = [{"q": f"question {number}", "a": f"answer {number}"} for number in range(6)]


class TaskFolder:
    """A folder of task files and data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.registry = default_registry(entry_points=False)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def data(self, name: str, rows: list[dict[str, Any]]) -> Path:
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def load(self, source: str, *, is_named: bool = False, **options: Any) -> LoadedFile:
        """Return what a task file with this text holds."""
        path = self.write("task_it.py", HEAD + textwrap.dedent(source))
        return load_file(path, "task_it", self.registry, options=LoadOptions(**options), is_named=is_named)

    def task(self, source: str, **options: Any) -> Any:
        """Return the one task of a file with this text."""
        loaded = self.load(source, **options)
        assert () == tuple(loaded.errors)
        (task,) = loaded.tasks
        return task

    def fault(self, source: str, **options: Any) -> str:
        """Return the one error of a file with this text."""
        (error,) = self.load(source, **options).errors
        return error.at("task_it.py")

    def quiz(self, changed: Mapping[str, str] | None = None, added: str = "", **options: Any) -> Any:
        """Return the task of the right class, after ``changed`` lines and with further methods."""
        return self.task(changed_quiz(changed or {}, added), **options)

    def quiz_fault(self, changed: Mapping[str, str] | None = None, added: str = "", **options: Any) -> str:
        return self.fault(changed_quiz(changed or {}, added), **options)


def changed_quiz(changed: Mapping[str, str], added: str = "") -> str:
    """Return the source of the right class, with some of its text replaced."""
    source = QUIZ
    for old, new in changed.items():
        assert old in source
        source = source.replace(old, new)
    return source + textwrap.indent(textwrap.dedent(added), "    ")


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    """Provide a folder with the data of the right class."""
    made = TaskFolder(tmp_path)
    made.data("quiz.jsonl", ROWS)
    return made
