"""Rows from csv, jsonl and parquet files, and which file a data set is."""

from __future__ import annotations

import csv
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.data.rows import BadRows, read_data
from pytest_lmeval.formats.declarative.datasets import open_dataset
from pytest_lmeval.formats.declarative.models.task import DatasetReference
from tests import needs
from tests.formats.declarative.making import EQUALS, document, make, read


def _rows(tmp_path: Path, name: str, data: bytes) -> Any:
    (tmp_path / name).write_bytes(data)
    return list(read_data(tmp_path / name)[0])


def test_the_formats_agree(tmp_path: Path) -> None:
    needs.installed("pyarrow")
    rows = [{"a": "x, y", "b": 'say "hi"\nthere'}, {"a": "ü\u2028", "b": ""}]
    text = 'a,b\r\n"x, y","say ""hi""\nthere"\r\nü\u2028,\r\n'
    assert rows == _rows(tmp_path, "rows.csv", b"\xef\xbb\xbf" + text.encode())
    assert rows == _rows(tmp_path, "rows.jsonl", "".join(f"{json.dumps(row)}\n\n# c\n" for row in rows).encode())
    parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    assert rows == list(read_data(tmp_path / "rows.parquet")[0])


def test_parquet_becomes_json(tmp_path: Path) -> None:
    needs.installed("pyarrow")
    parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    from datetime import date

    rows = [{"n": float("nan"), "d": date(2024, 1, 2), "l": [1, 2], "m": {"k": None}}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (row,) = read_data(tmp_path / "rows.parquet")[0]
    assert {"n": None, "d": "2024-01-02", "l": [1, 2], "m": {"k": None}} == row


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("r.csv", b"a,b\n1\n", "r.csv:2: 1 cells; expected 2"),
        ("r.csv", b"a,a\n1,2\n", "r.csv:1: expected a different name for every column"),
        ("r.csv", b"a,\n1,2\n", "r.csv:1: expected a different name for every column"),
        ("r.csv", b'a\n"x"y\n', "r.csv:2: "),
        ("r.csv", b"\xff", "r.csv:1: not UTF-8"),
        ("r.csv", b"a,b\n", "r.csv: no row in the file"),
        ("r.jsonl", b"", "r.jsonl: no row in the file"),
        ("r.jsonl", b'{"a": 1, "a": 2}', "r.jsonl:1: duplicate key 'a'"),
        ("r.parquet", b"no", "r.parquet: not parquet"),
    ],
)
def test_a_bad_file_says_where(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    needs.installed("pyarrow")
    with pytest.raises(BadRows, match=message):
        _rows(tmp_path, name, data)


def test_a_long_cell_is_read_whatever_was_read_before(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    (row,) = _rows(tmp_path, "r.csv", b"a\n" + b"x" * 200_000 + b"\n")
    assert (200_000, before) == (len(row["a"]), csv.field_size_limit())


def test_of_many_bad_lines_the_first_twenty_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadRows) as caught:
        _rows(tmp_path, "r.jsonl", b"x\n" * 50)
    assert 21 == len(caught.value.faults)
    assert "r.jsonl: and 30 more" == caught.value.faults[-1]


@pytest.mark.parametrize("place", ["tasks/set.yaml", "tasks/datasets/set.yaml", "set.yaml", "datasets/set.yaml"])
@pytest.mark.parametrize("form", ["file_path: rows.csv", "source: {type: local, file_path: ./rows.csv}"])
def test_a_data_set_is_found_by_its_key_beside_the_task_or_above(tmp_path: Path, place: str, form: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "tasks").mkdir(exist_ok=True)
    path.write_text(f"key: my-rows\ndisplay_name: Rows\n{form}\nid_column: a\n")
    (path.parent / "rows.csv").write_text("a,b\n1,2\n")
    dataset = open_dataset(DatasetReference(key="my-rows"), tmp_path / "tasks" / "task.yaml")
    assert ([{"a": "1", "b": "2"}], "a") == (dataset.rows, dataset.id_column)


def test_a_data_set_that_is_wrong_says_where(tmp_path: Path) -> None:
    reference, task = DatasetReference(key="rows"), tmp_path / "task.yaml"
    (tmp_path / "set.yaml").write_text("key: rows\nfile_path: rows.csv\nid_colum: a\n")
    with pytest.raises(BadRows, match=r"set.yaml:3: unknown_field id_colum: column 1: .* did you mean 'id_column'"):
        open_dataset(reference, task)
    (tmp_path / "set.yaml").write_text("key: rowz\nfile_path: rows.csv\n")
    with pytest.raises(BadRows, match="no data set has the key 'rows'; did you mean 'rowz'"):
        open_dataset(reference, task)
    (tmp_path / "set.yaml").write_text("key: rows\nsource: {type: local, file_path: r.csv}\nfile_path: r.csv")
    with pytest.raises(BadRows, match="expected either file_path or source"):
        open_dataset(reference, task)
    (tmp_path / "set.yaml").write_text("key: rows\nfile_path: ../../../../../../../etc/r.csv")
    with pytest.raises(BadRows, match="outside of the project"):
        open_dataset(reference, task)


def test_rows_are_called_by_their_id_or_their_number(tmp_path: Path) -> None:
    def ids(rows: list[dict[str, Any]], **dataset: str) -> list[str]:
        task = document(dataset={"path": "rows.jsonl", **dataset})
        return [
            example.id
            for example in read(tmp_path, task, [{"q": "q", "a": "a", **row} for row in rows]).tasks[0].examples
        ]

    assert ["x", "7"] == ids([{"id": "x"}, {"id": 7}])
    assert ["0", "1"] == ids([{"id": "x"}, {"id": "x"}])
    assert ["0", "1"] == ids([{"id": None}, {}])
    assert ["k", "l"] == ids([{"id": 1, "n": "k"}, {"id": 2, "n": "l"}], id_column="n")


def test_a_column_breaks_the_board_down(tmp_path: Path) -> None:
    task = make(
        tmp_path, [EQUALS], dataset={"path": "rows.jsonl", "category_column": "human"}, root={"tags": ["quick"]}
    )
    assert ["good", "bad"] == [example.category for example in task.examples]
    assert {"tags": ["quick"]} == task.examples[0].metadata
