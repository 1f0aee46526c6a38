"""Data beside the tasks is no task; what is one stays one."""

from __future__ import annotations

import json

import pytest

from pytest_lmeval.formats.files import is_task_file
from pytest_lmeval.formats.python.claims import is_data, rows_of_others
from pytest_lmeval.loading import default_registry

from .conftest import QUIZ, ROWS, TaskFolder

COMPACT = {"prompt": "2 + 2 =", "targets": ["4"], "metric": "exact_match"}


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ('DATASET_PATH = "quiz"', "quiz.jsonl"),
        ('DATASET_PATH: str = "quiz.jsonl"', "quiz.jsonl"),
        ('DATASET_PATH = "quiz"', "quiz/test.jsonl"),
        ('DATASET_PATH = "owner/quiz"', "owner/quiz/north/test.jsonl"),
        ('rows = load_dataset("owner/quiz", split="test")', "owner/quiz/test.jsonl"),
        ('rows = tasks.load_dataset("owner/quiz", split="test")', "owner/quiz.jsonl"),
        ('rows = tasks.load_dataset(path="owner/quiz", split="test")', "owner/quiz.jsonl"),
        ('rows = load_hub_dataset("owner/quiz", subset="quiz", split="test")', "owner/quiz/quiz/test.jsonl"),
        ('rows = json.load(open("quiz.jsonl"))', "quiz.jsonl"),
        ('class T(CustomJSON): pass\nT("owner/quiz.jsonl")', "owner/quiz.jsonl"),
    ],
)
def test_data_that_a_task_file_names_is_no_task(folder: TaskFolder, source: str, file: str) -> None:
    path = folder.data(file, ROWS)
    assert not is_data(path)

    folder.write("task_it.py", source)
    assert is_data(path)


@pytest.mark.parametrize(
    "source",
    [
        'DATASET_PATH = "other"',
        'DATASET_PATH = "."',
        'NAME = "quiz"',
        "# DATASET_PATH = 'quiz'",
        "class broken(",
        'DATASET_PATH = f"{quiz}"',
        'def rows(name): return load_dataset(name)\nrows("quiz")',
    ],
)
def test_a_name_that_only_looks_alike_claims_nothing(folder: TaskFolder, source: str) -> None:
    path = folder.data("quiz.jsonl", ROWS)
    folder.write("task_it.py", source)

    assert not is_data(path)


def test_a_file_that_holds_a_task_stays_one_whoever_names_it(folder: TaskFolder) -> None:
    path = folder.write("quiz.jsonl", "# a comment\n" + json.dumps(COMPACT))
    folder.write("task_it.py", QUIZ)

    assert is_data(path)
    assert is_task_file(path, default_registry())


def test_an_edited_task_file_is_read_anew(folder: TaskFolder) -> None:
    path = folder.data("quiz.jsonl", ROWS)
    folder.write("task_it.py", 'DATASET_PATH = "quiz"')
    assert is_data(path)

    folder.write("task_it.py", 'DATASET_PATH = "another"')
    assert not is_data(path)


def test_rows_that_a_task_file_opens_by_a_path_it_computes_name_it_if_only_one_mentions_them(
    folder: TaskFolder,
) -> None:
    path = folder.data("owner/quiz/test.jsonl", ROWS)
    folder.write("task_a.py", "NAME = 'other'")
    folder.write("task_b.py", "PATH = f'{root}/quiz/{split}.jsonl'")
    assert rows_of_others(path, path.read_bytes()).endswith("; rows for task_b.py?")
    folder.write("task_a.py", "NAME = 'quiz'")
    assert rows_of_others(path, path.read_bytes()).endswith("but no field of a task")
