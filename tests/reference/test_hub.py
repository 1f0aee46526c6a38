"""Data through the ``datasets`` library, from the disk: no test asks a network."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import needs
from tests.formats.python.conftest import ROWS, TaskFolder

datasets = needs.module("datasets")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


def _save(path: Path, first: int = 0) -> None:
    splits = {"test": ROWS[first : first + 3], "train": ROWS[3:]}
    datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in splits.items()}).save_to_disk(path)


def test_a_dataset_that_was_saved_to_disk_is_asked_about(folder: TaskFolder) -> None:
    _save(folder.path / "saved")
    task = folder.quiz({'"quiz.jsonl"': '"saved"'}, num_fewshot=2)

    assert [row["a"] for row in ROWS[:3]] == [example.targets[0] for example in task.examples]
    assert {f"Q: {row['q']}" for row in ROWS[3:]} >= {message.content for message in task.examples[0].messages[:-1:2]}


def test_its_hash_is_that_of_its_files(folder: TaskFolder) -> None:
    hashes = []
    for number, first in enumerate((0, 1, 0)):
        _save(folder.path / f"saved{number}", first)
        hashes.append(folder.quiz({'"quiz.jsonl"': f'"saved{number}"'}).dataset["sha256"])

    assert hashes[0] == hashes[2]
    assert hashes[0] != hashes[1]


def test_a_single_split_that_was_saved_has_its_name(folder: TaskFolder) -> None:
    datasets.Dataset.from_list(ROWS, split="test").save_to_disk(folder.path / "saved")

    assert 6 == len(folder.quiz({'"quiz.jsonl"': '"saved"'}).examples)
    assert "has no split 'dev'; it has test" in folder.quiz_fault(
        {'"quiz.jsonl"': '"saved"', 'SAMPLE_SPLIT = "test"': 'SAMPLE_SPLIT = "dev"'}
    )


def test_load_dataset_of_a_task_file_reads_it_too(folder: TaskFolder) -> None:
    _save(folder.path / "saved")
    source = """
    rows = load_dataset("saved", split="test")
    class Rows(Task):
        eval_type = "generative"
        def num_examples(self): return len(rows)
        def get_example(self, index):
            row = rows[index]
            return {"messages": [{"role": "user", "content": row["q"]}, {"role": "assistant", "content": row["a"]}]}
        def evaluate(self, conversation, response): return True
    """

    assert ["answer 0", "answer 1", "answer 2"] == [example.targets[0] for example in folder.task(source).examples]


def test_a_name_that_the_hub_does_not_give_is_refused(folder: TaskFolder) -> None:
    fault = folder.quiz_fault({'"quiz.jsonl"': '"no_such_owner/no_such_data"'})

    assert "bad_value Quiz.DATASET_PATH: no data 'no_such_owner/no_such_data' beside the task file, and" in fault


def test_without_the_library_it_is_said_how_to_get_it(folder: TaskFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)

    fault = folder.quiz_fault({'"quiz.jsonl"': '"no_such_owner/no_such_data"'})
    assert "for a name on the hub: pip install 'pytest-lmeval[hub]'" in fault


HUB = """
import sys, types

class Split(list):
    _fingerprint = "f1"

def load_dataset(path, name=None, *, split=None, **options):
    log.append((path, name, options))
    rows = Split({"q": f"{name or path} {number}", "a": "yes"} for number in range(2))
    return {"test": rows}

log = []
"""


def test_each_subject_is_a_configuration_where_the_hub_has_one_for_it(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, object] = {}
    exec(HUB, namespace)
    monkeypatch.setattr(datasets, "load_dataset", namespace["load_dataset"])
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda path, revision: ["north", "south", "west"])
    settings = 'SUBJECTS = ["north", "south"]\n    HF_REVISION = "abc"\n    METRICS ='
    task = folder.quiz({'"quiz.jsonl"': '"owner/places"', "METRICS =": settings})

    assert ["north", "north", "south", "south"] == [example.category for example in task.examples]
    assert "Q: south 1" == task.examples[3].prompt
    assert [("owner/places", name, {"revision": "abc"}) for name in ("north", "south")] == namespace["log"]
    assert "abc" == task.dataset["revision"]


def test_without_such_configurations_the_whole_is_loaded(folder: TaskFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, object] = {}
    exec(HUB, namespace)
    monkeypatch.setattr(datasets, "load_dataset", namespace["load_dataset"])
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda path, revision: ["default"])

    assert 2 == len(folder.quiz({'"quiz.jsonl"': '"owner/places"'}).examples)
