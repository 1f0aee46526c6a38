"""Images, audio and files in the messages of declarative tasks: cells with bytes, and parts that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.media import read
from tests.formats.declarative.making import SOLVER, document, faults, score
from tests.formats.declarative.making import read as loaded
from tests.needs import module
from tests.pictures import CAT, DOG
from tests.schemas import validator

BUILDER = "definition.solver.input_builder.input_messages[0]"
SHAPE = 'expected a text, or a list of texts and media such as {image: "PATH"}'
PART = 'expected a text, or an object such as {"image": "PATH"}; its key is image, audio or file; got '


def _task(content: Any, **parts: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": content}]
    return document(
        solver={**SOLVER, "input_builder": {**SOLVER["input_builder"], "input_messages": messages}}, **parts
    )


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([{"video": "a.mp4"}], f"bad_value {BUILDER}.content[0]: {PART}{{'video': 'a.mp4'}}"),
        (
            ["What?", {"image": "a", "audio": "b"}],
            f"bad_value {BUILDER}.content[1]: {PART}{{'image': 'a', 'audio': 'b'}}",
        ),
        (["What?", {"image": 5}], f"bad_type {BUILDER}.content[1]: expected a path or a data: address, got 5"),
        (["What?"], f"bad_type {BUILDER}.content: {SHAPE}"),
        ([], f"bad_type {BUILDER}.content: {SHAPE}"),
    ],
)
def test_parts_that_cannot_be_are_refused(content: Any, fault: str, tmp_path: Path) -> None:
    assert [fault] == faults(tmp_path, _task(content))
    assert not validator("task").is_valid(_task(content))
    assert validator("task").is_valid(_task(["What?", {"image": "{{ sample.path }}"}]))


def test_a_fault_has_the_line_and_column_of_its_part_and_the_row(tmp_path: Path) -> None:
    text = json.dumps(_task(["What?", {"image": "{{ sample.path }}"}]), indent=1)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if '"image"' in one)
    (tmp_path / "cat.png").write_bytes(CAT)
    (tmp_path.parent / "out.png").write_bytes(CAT)
    rows = [{"path": path, "a": "x"} for path in ("cat.png", "cat.jpg", "../out.png")]
    first, second = loaded(tmp_path, text, rows).errors
    assert (line, f"{BUILDER}.content[1].image") == (first.line_number, first.field)
    assert first.detail.startswith("column 9: row 1: cat.jpg: cannot be read: No such file")
    assert "row 2: ../out.png: outside of" in second.detail
    (every,) = loaded(tmp_path, text, [{"path": "none.png", "a": "x"}] * 2).errors
    assert "row" not in every.detail.partition(":")[2].partition(":")[0]


def test_a_column_of_parquet_has_bytes(tmp_path: Path) -> None:
    arrow, parquet = module("pyarrow"), module("pyarrow.parquet")
    columns = {"image": [CAT, DOG], "sound": [b"x", b"y"], "a": ["cat", "dog"]}
    parquet.write_table(arrow.table(columns), tmp_path / "rows.parquet")
    task = _task(["What?", {"image": "{{ sample.image }}"}], dataset={"path": "rows.parquet"})
    (made,) = loaded(tmp_path, task).tasks
    assert isinstance(made, DeclarativeTask)
    media = [one for example in made.examples for one in example.messages[0].media]
    assert [CAT, DOG] == [read(one) for one in media]
    assert ["rows.parquet:1 image", "rows.parquet:2 image"] == [one.source for one in media]
    assert {"image": None, "sound": None, "a": "cat", "sample_id": 0} == made.record(made.examples[0])
    (as_text,) = loaded(tmp_path, _task("{{ sample.image }}", dataset={"path": "rows.parquet"})).tasks
    assert isinstance(as_text, DeclarativeTask)
    assert "the column has bytes, which are no text" in score(as_text, "", "")[0].error
