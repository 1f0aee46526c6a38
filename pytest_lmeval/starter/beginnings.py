"""Create the first task or eval of a new project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.starter.columns import QuestionRows
from pytest_lmeval.starter.models import ChosenModel

_FILES = Path(__file__).with_name("files")


@dataclass(frozen=True, slots=True)
class Beginning:
    """The text of each file by its path in the project, and the paths to run.

    ``imports`` means that the files import the project's modules. ``has_ids`` means that each example has an id, so
    that comparisons can pair it by id after its prompt changes.
    """

    files: Mapping[str, str]
    paths: tuple[str, ...] = ("tasks/",)
    imports: bool = False
    has_ids: bool = True


def beginning(folder: Path, model: ChosenModel, rows: QuestionRows | None, *, function: bool) -> Beginning:
    """Return an eval function, a task over the user's rows, or small tasks with sample questions.

    A project with the toy model gets questions that the toy model can answer; any other project gets general questions.
    """
    if function:
        return _function(folder, model, rows)
    if rows is not None:
        return _task_of_rows(folder, rows)
    names = ("arithmetic.jsonl", "support.jsonl") if model.kind == "toy" else ("first.jsonl",)
    return Beginning({f"tasks/{name}": _text(f"tasks/{name}") for name in names})


def _function(folder: Path, model: ChosenModel, rows: QuestionRows | None) -> Beginning:
    text = _text("tests/test_evals.py.txt")
    if model.named:
        text = text.replace("async def answer", f"MODEL = {json.dumps(model.named)}\n\n\nasync def answer", 1)
        text = text.replace('answer alone.")', 'answer alone.", model=MODEL)')
    if rows is None:
        files = {"tests/test_evals.py": text, "tests/questions.jsonl": _text("tests/questions.jsonl")}
        return Beginning(files, ("tests/test_evals.py",), imports=True)
    for old, new in (
        ('"questions.jsonl"', json.dumps(_relative(rows.path, folder / "tests"))),
        ('row["question"]', f"row[{rows.question!r}]".replace("'", '"')),
        ('row["answer"]', f"row[{rows.answer!r}]".replace("'", '"')),
    ):
        text = text.replace(old, new)
    return Beginning({"tests/test_evals.py": text}, ("tests/test_evals.py",), imports=True, has_ids=rows.id == "")


def _task_of_rows(folder: Path, rows: QuestionRows) -> Beginning:
    """Return a task file that reads the user's rows from their file; each row is a test."""
    for column in (rows.question, rows.answer):
        if not (column.isascii() and column.isidentifier()):
            raise UsageError(f"--from {rows.path}: a template cannot name the column {column!r}; rename it to a word")
    if rows.are_numbers:
        metric, request = "number", "Reply with the number alone."
    elif rows.labels:
        metric, request = "exact_match", f"Reply with one of these alone: {', '.join(rows.labels)}."
    else:
        metric, request = "contains_any", ""
    prompt = f"{{{{ {rows.question} }}}}" + (f"\n{request}" if request else "")
    text = _text("tasks/rows.yaml")
    for old, new in (
        ("@DATA@", json.dumps(_relative(rows.path, folder / "tasks"))),
        ("@ID@", f"# The id of a row in reports and comparisons.\nid: {json.dumps(rows.id)}\n" if rows.id else ""),
        ("@PROMPT@", json.dumps(prompt, ensure_ascii=False)),
        ("@TARGET@", json.dumps(f"{{{{ {rows.answer} }}}}", ensure_ascii=False)),
        ("@METRIC@", metric),
    ):
        text = text.replace(old, new)
    name = safe_name(rows.path.stem.lower(), "rows")
    return Beginning({f"tasks/{name}.yaml": text}, has_ids=rows.id is not None)


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()


def _text(name: str) -> str:
    return _FILES.joinpath(name).read_text("utf-8")
