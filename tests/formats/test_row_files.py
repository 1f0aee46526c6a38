"""The rows of a data set may lie among the tasks: they are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_lmeval.formats.files import is_row_file


@pytest.mark.parametrize(
    "line",
    [
        "file_path: rows.jsonl",
        "file_path: './rows.jsonl'",
        "source:\n  type: local\n  file_path: ../tasks/rows.jsonl  # the rows",
        "  - path: rows.jsonl",
    ],
)
def test_a_file_that_a_data_set_names_is_no_task(tmp_path: Path, line: str) -> None:
    rows = tmp_path / "tasks" / "rows.jsonl"
    rows.parent.mkdir()
    rows.write_text('{"a": 1}\n')
    assert not is_row_file(rows)
    (rows.parent / "set.yaml").write_text(f"key: x\n{line}\n")
    assert is_row_file(rows)


def test_others_are(tmp_path: Path) -> None:
    (tmp_path / "set.yaml").write_text("file_path: rows.jsonl\n")
    other = tmp_path / "arrows.jsonl"
    other.write_text('{"a": 1}\n')
    assert not is_row_file(other)
    task = tmp_path / "rows.jsonl"
    task.write_text('{"prompt": "a", "targets": ["b"], "metric": "exact_match"}\n')
    assert not is_row_file(task)
    assert not is_row_file(tmp_path / "missing.jsonl")
