"""``load_dataset`` finds data beside the file that calls it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import RecordRefused

CALLER = "from pytest_lmeval.tasks import load_dataset\nresult = load_dataset({arguments})\n"


def _called(tmp_path: Path, arguments: str) -> Any:
    file = tmp_path / "task_caller.py"
    file.write_text(CALLER.format(arguments=arguments))
    return runpy.run_path(str(file))["result"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "owner" / "quiz").mkdir(parents=True)
    (tmp_path / "owner" / "quiz" / "test.jsonl").write_text('{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    (tmp_path / "owner" / "quiz" / "train.csv").write_text("a\n4\n")
    return tmp_path


def test_a_split_is_rows_and_columns(folder: Path) -> None:
    rows = _called(folder, "'owner/quiz', split='test'")

    assert [3, {"a": 1}, [{"a": 2}, {"a": 3}], [1, 2, 3]] == [len(rows), rows[0], rows[1:], rows["a"]]


def test_rows_can_be_shuffled_selected_and_filtered(folder: Path) -> None:
    rows = _called(folder, "'owner/quiz', split='test'")

    assert [3, 2, 1] == rows.shuffle(seed=42)["a"]
    assert [1, 2, 3] == sorted(rows.shuffle(seed=7)["a"])
    assert [3, 1] == rows.select([2, 0])["a"]
    assert [2, 3] == rows.filter(lambda row: row["a"] > 1)["a"]
    assert rows.sha256 == rows.shuffle(seed=7).sha256


def test_a_seed_that_is_no_whole_number_is_refused(folder: Path) -> None:
    rows = _called(folder, "'owner/quiz', split='test'")

    with pytest.raises(ValueError, match="seed: expected a whole number >= 0, got -1"):
        rows.shuffle(seed=-1)


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ("'owner', 'qiuz'", "owner has no configuration 'qiuz'; did you mean 'quiz'? it has other, quiz"),
        ("'owner', 'default'", "owner has no configuration 'default'; it has other, quiz"),
        ("'owner/quiz', 'main'", "quiz has no configuration 'main'; it has no folders for configurations"),
        ("'owner/quiz/test', 'main'", "test.jsonl has no configuration 'main'; it has no folders for configurations"),
    ],
)
def test_a_configuration_that_is_not_there_is_refused_with_the_choices(
    folder: Path, arguments: str, detail: str
) -> None:
    (folder / "owner" / "other").mkdir()

    with pytest.raises(RecordRefused, match=re.escape(detail)):
        _called(folder, f"{arguments}, split='test'")


@pytest.mark.parametrize("arguments", ["'owner', 'quiz'", "'owner/quiz', 'default'", "'owner/quiz/test', 'default'"])
def test_a_configuration_is_a_folder_in_the_data(folder: Path, arguments: str) -> None:
    assert [1, 2, 3] == _called(folder, f"{arguments}, split='test'")["a"]


def test_without_a_split_all_of_them_come_by_name(folder: Path) -> None:
    splits = _called(folder, "'owner/quiz'")

    assert ["test", "train"] == sorted(splits)
    assert [{"a": "4"}] == list(splits["train"])


def test_a_split_that_is_not_there_is_refused_with_the_choices(folder: Path) -> None:
    with pytest.raises(RecordRefused, match="quiz has no split 'tset'; did you mean 'test'\\? it has test, train"):
        _called(folder, "'owner/quiz', split='tset'")


def test_data_that_is_not_there_and_no_name_on_a_hub_is_refused(folder: Path) -> None:
    with pytest.raises(RecordRefused, match="no such file or folder beside the task file"):
        _called(folder, "'./nowhere', split='test'")


@pytest.mark.parametrize("subset", ["quiz", "default"])
def test_the_hub_s_rows_are_local_with_a_folder_for_the_subset_or_without(folder: Path, subset: str) -> None:
    hub = f"'owner/quiz', subset={subset!r}, split='test'"
    caller = CALLER.replace("load_dataset", "load_hub_dataset")
    (folder / "task_hub.py").write_text(caller.format(arguments=hub))
    assert [1, 2, 3] == runpy.run_path(str(folder / "task_hub.py"))["result"]["a"]

    (folder / "owner/quiz" / subset).mkdir()
    (folder / "owner/quiz" / subset / "test.jsonl").write_text('{"a": 9}\n')
    assert [9] == runpy.run_path(str(folder / "task_hub.py"))["result"]["a"]


def test_another_subset_needs_its_folder(folder: Path) -> None:
    caller = CALLER.replace("load_dataset", "load_hub_dataset")
    (folder / "task_hub.py").write_text(caller.format(arguments="'owner/quiz', 'main', split='test'"))
    with pytest.raises(RecordRefused, match="quiz has no configuration 'main'"):
        runpy.run_path(str(folder / "task_hub.py"))
