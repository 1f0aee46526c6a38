"""A file is there whole or not at all, and what is in it is strict JSON."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval import ExampleResult, Leaderboard, write_leaderboard
from pytest_lmeval.atomic import encode_json, write_atomically
from pytest_lmeval.leaderboard.board import RunFacts, build_board

RESULT = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", outputs=("fünf",), predictions=("fünf",))


def _board(*results: ExampleResult) -> Leaderboard:
    return build_board((), results, RunFacts("2026-11-21T08:00:00Z", "toy.v1"))


# JSON


def test_a_board_is_written_as_indented_utf_8(tmp_path: Path) -> None:
    write_leaderboard(_board(RESULT), tmp_path / "leaderboard.json", include_per_example=True)
    data = (tmp_path / "leaderboard.json").read_bytes()
    assert data.startswith(b'{\n  "schema": "pytest-lmeval/leaderboard/2",\n  "timestamp"')
    assert data.endswith(b"}\n")
    assert "fünf".encode() in data
    assert json.loads(json.dumps(_board(RESULT).to_json(per_example=True))) == json.loads(data)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\u2028\u0085\x00\x1b", "\U0001f600"])
def test_any_text_a_model_can_write_survives(tmp_path: Path, text: str) -> None:
    board = _board(replace(RESULT, outputs=(text,), predictions=(text,)))
    write_leaderboard(board, tmp_path / "leaderboard.json", include_per_example=True)
    written = json.loads((tmp_path / "leaderboard.json").read_bytes())
    assert text == written["tasks"][0]["per_example"][0]["output"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(tmp_path: Path, number: float) -> None:
    (tmp_path / "leaderboard.json").write_text("old")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_leaderboard(_board(replace(RESULT, score=number)), tmp_path / "leaderboard.json")
    assert ["old"] == [path.read_text() for path in tmp_path.iterdir()]


@settings(deadline=None)
@given(st.recursive(st.none() | st.text(st.characters()) | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_every_value_is_read_back_as_it_was(value: Any) -> None:
    assert value == json.loads(encode_json(value).decode("utf-8"))


# Files


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_file_has_the_rights_of_any_new_file(tmp_path: Path, mask: int) -> None:
    old = os.umask(mask)
    try:
        write_atomically(tmp_path / "board", b"x")
        (tmp_path / "plain").write_bytes(b"x")
        assert mask == os.umask(mask)
    finally:
        os.umask(old)
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "board").stat().st_mode


def test_a_reader_of_the_older_file_reads_on(tmp_path: Path) -> None:
    write_atomically(tmp_path / "board", b"old")
    with (tmp_path / "board").open("rb") as reader:
        write_atomically(tmp_path / "board", b"new")
        assert b"old" == reader.read()


def test_a_folder_in_its_place_is_an_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "board").mkdir()
    with pytest.raises(OSError, match="board"):
        write_atomically(tmp_path / "board", b"x")
    assert ["board"] == [path.name for path in tmp_path.iterdir()]


_WRITE = """
import pathlib, resource, sys
from pytest_lmeval.atomic import write_atomically

sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(pathlib.Path(sys.argv[1]), b"new" * 1000)
except OSError as error:
    print(error.strerror)
"""


def test_a_write_that_fails_half_way_leaves_the_older_file_whole(tmp_path: Path) -> None:
    (tmp_path / "board").write_bytes(b"old" * 1000)
    done = subprocess.run(
        [sys.executable, "-c", _WRITE, tmp_path / "board"], capture_output=True, text=True, check=False
    )
    assert ("File too large\n", "", 0) == (done.stdout, done.stderr, done.returncode)
    assert {"board": b"old" * 1000} == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


_WRITE_FOR_EVER = """
import pathlib, sys
from pytest_lmeval.atomic import write_atomically

print("writing", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_atomically(pathlib.Path(sys.argv[1]), letter * 100_000)
"""


def test_a_reader_never_sees_half_a_file_even_if_the_writer_is_killed(tmp_path: Path) -> None:
    write_atomically(tmp_path / "board", b"a" * 100_000)
    command = [sys.executable, "-c", _WRITE_FOR_EVER, str(tmp_path / "board")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        seen = [(tmp_path / "board").read_bytes() for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
    seen.append((tmp_path / "board").read_bytes())
    assert {b"a" * 100_000, b"b" * 100_000} >= set(seen)
