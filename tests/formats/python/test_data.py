"""Data files: their rows, and what is wrong with them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pytest_lmeval.data import local
from pytest_lmeval.data.splits import Splits
from pytest_lmeval.errors import RecordRefused
from tests import needs

pyarrow = needs.module("pyarrow")


def _read(path: Path, split: str = "test") -> list[dict[str, object]]:
    return list(local.read(path)[split])


def _parquet(path: Path, rows: list[dict[str, object]]) -> None:
    parquet = needs.module("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def test_a_single_file_is_every_split(tmp_path: Path) -> None:
    (tmp_path / "quiz.jsonl").write_text('{"a": 1}\n\n# a comment\n{"a": 2}\n')
    splits = local.read(tmp_path / "quiz.jsonl")

    assert [{"a": 1}, {"a": 2}] == list(splits["test"])
    assert splits["train"] is splits["test"]
    assert "anything" in splits


def test_a_folder_has_a_file_or_several_per_split(tmp_path: Path) -> None:
    _parquet(tmp_path / "test-00001-of-00002.parquet", [{"a": 2}])
    _parquet(tmp_path / "test-00000-of-00002.parquet", [{"a": 1}])
    (tmp_path / "train.jsonl").write_text('{"a": 3}\n')
    (tmp_path / "README.md").write_text("about the data")
    splits = local.read(tmp_path)

    assert ["test", "train"] == sorted(splits)
    assert [{"a": 1}, {"a": 2}] == list(splits["test"])


def test_only_the_split_that_is_asked_for_is_read(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "train.jsonl").write_text("not json")

    assert [{"a": 1}] == _read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "detail"),
    [
        ("q.jsonl", b"", "q.jsonl: the split 'test' is empty"),
        ("q.csv", b"a,b\n", "q.csv: the split 'test' is empty"),
        ("q.jsonl", b'{"a": 1}\n{"a":\n', "q.jsonl:2: Expecting value at column"),
        ("q.csv", b"a,b\n1\n", "q.csv:2: 1 cells; expected 2: a, b"),
        ("q.parquet", b"PAR?", "q.parquet: "),
    ],
)
def test_a_bad_file_says_where_and_what(tmp_path: Path, name: str, content: bytes, detail: str) -> None:
    (tmp_path / name).write_bytes(content)

    with pytest.raises(RecordRefused) as caught:
        _read(tmp_path / name)
    assert caught.value.detail.startswith(detail)


def test_a_folder_without_data_says_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(RecordRefused, match=r"expected one file per split, such as test\.jsonl"):
        local.read(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").symlink_to(tmp_path / "test.jsonl")
    splits = Splits({"test": partial(local._rows, [tmp_path / "test.jsonl"])}, "quiz")

    with pytest.raises(RecordRefused, match=r"test\.jsonl cannot be read"):
        _ = splits["test"]


@pytest.mark.parametrize("name", ["quiz", "quiz.jsonl", "./quiz", "sub/../quiz"])
def test_a_name_is_found_with_and_without_its_suffix(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "quiz.jsonl").write_text("{}\n")

    found = local.find(name, tmp_path)
    assert found is not None
    assert (tmp_path / "quiz.jsonl").samefile(found)


def test_what_is_not_there_may_be_a_name_on_a_hub(tmp_path: Path) -> None:
    assert [None, None] == [local.find(name, tmp_path) for name in ("quiz", "owner/quiz")]


@pytest.mark.parametrize("name", ["./quiz", "../quiz", "/nowhere/quiz", "a/b/c", "quiz.jsonl", "quiz.csv"])
def test_what_cannot_be_a_name_on_a_hub_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordRefused, match="no such file or folder beside the task file"):
        local.find(name, tmp_path)
