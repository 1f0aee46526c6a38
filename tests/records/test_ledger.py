"""The record of a run outlives the run: whole lines, one run a folder, nothing old lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import UsageError
from pytest_lmeval.records.ledger import Ledger

LINE = '{"task":"t","id":"a"}'
RUN: dict[str, Any] = {"tasks": []}


def _lines(path: Path) -> list[Any]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def _write(folder: Path, *lines: str, footer: dict[str, Any] | None) -> Ledger:
    ledger = Ledger(folder)
    ledger.open({"adapter": "toy"})
    for line in lines:
        ledger.append(line)
    ledger.close(footer, RUN if footer else None)
    return ledger


def _kept_aside(folder: Path) -> list[Path]:
    return sorted(folder.glob("ledger-*.jsonl"))


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Provide another process that has a ledger in the folder open, with one line in it."""
    program = (
        "import sys, pathlib\n"
        "from pytest_lmeval.records.ledger import Ledger\n"
        "ledger = Ledger(pathlib.Path(sys.argv[1]))\n"
        "ledger.open({})\n"
        "ledger.append(sys.argv[2])\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), LINE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "open\n" == process.stdout.readline()
        yield process
        process.kill()


def test_a_ledger_is_a_header_then_the_results_then_its_end(tmp_path: Path) -> None:
    ledger = _write(tmp_path / "reports" / "new", LINE, LINE, footer={"digest": "d"})
    assert tmp_path / "reports" / "new" / "ledger.jsonl" == ledger.path
    header = {"header": {"schema": "pytest-lmeval/ledger/2", "adapter": "toy"}}
    results = [json.loads(LINE)] * 2
    assert [header, *results, {"run": RUN}, {"footer": {"digest": "d"}}] == _lines(ledger.path)
    assert ledger.failure is None


def test_a_killed_run_leaves_every_line_it_wrote(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert json.loads(LINE) == _lines(tmp_path / "ledger.jsonl")[-1]


def test_a_folder_in_use_by_another_run_is_a_usage_error(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with pytest.raises(UsageError, match="in use by another run"):
        Ledger(tmp_path).open({})
    assert before == (tmp_path / "ledger.jsonl").read_bytes()
    assert [] == _kept_aside(tmp_path)


def test_a_folder_is_free_again_when_its_run_is_over(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.kill()
    other.wait()
    _write(tmp_path, footer={})
    _write(tmp_path, footer={})


def test_a_complete_ledger_is_kept_until_it_is_replaced(tmp_path: Path) -> None:
    old = _write(tmp_path, LINE, LINE, footer={"complete": True, "digest": "old"}).path.read_bytes()
    ledger = _write(tmp_path, LINE, footer={"complete": True, "digest": "new"})
    assert [{"footer": {"complete": True, "digest": "new"}}] == _lines(ledger.path)[3:]
    assert [old] == [path.read_bytes() for path in _kept_aside(tmp_path)]
    ledger.leave_replaced(tmp_path)
    assert [] == _kept_aside(tmp_path)
    assert old == (tmp_path / "previous/ledger.jsonl").read_bytes()


def test_an_incomplete_ledger_is_kept_for_good(tmp_path: Path) -> None:
    _write(tmp_path, LINE, footer=None)
    _write(tmp_path, LINE, footer={"complete": True}).leave_replaced(tmp_path)
    assert 1 == len(_kept_aside(tmp_path))


def test_a_complete_ledger_is_gone_on_with(tmp_path: Path) -> None:
    before = _write(tmp_path, LINE, footer={"complete": True}).path.read_bytes()
    ledger = Ledger(tmp_path)
    ledger.open({}, resume=True)
    ledger.close({"complete": True})
    assert ledger.path.read_bytes().startswith(before)
    assert [] == _kept_aside(tmp_path)


def test_incomplete_ledgers_are_all_kept_under_their_time(tmp_path: Path) -> None:
    ids = [f'{{"id":"{number}"}}' for number in range(4)]
    for line in ids[:3]:
        ledger = _write(tmp_path, line, footer=None)
        os.utime(ledger.path, (0, 0))
    _write(tmp_path, ids[3], footer={})
    kept = _kept_aside(tmp_path)
    assert 3 == len(kept)
    assert all(path.name.startswith("ledger-19700101T000000Z") for path in kept)
    assert {"0", "1", "2"} == {_lines(path)[1]["id"] for path in kept}


def test_a_ledger_that_was_cut_anywhere_is_incomplete(tmp_path: Path) -> None:
    whole = _write(tmp_path, LINE, footer={"digest": "d", "complete": True}).path.read_bytes()
    lost = []
    for length in range(len(whole) - 1):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "ledger.jsonl").write_bytes(whole[:length])
        _write(folder, footer={})
        if [whole[:length]] != [path.read_bytes() for path in _kept_aside(folder)]:
            lost.append(whole[:length])
    assert [] == lost


def test_an_answer_that_looks_like_a_footer_is_none(tmp_path: Path) -> None:
    _write(tmp_path, json.dumps({"output": '\n{"footer":{}}'}), footer=None)
    _write(tmp_path, footer={})
    assert 1 == len(_kept_aside(tmp_path))


_FULL = """
import pathlib, resource, sys
from pytest_lmeval.records.ledger import Ledger

sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
ledger = Ledger(pathlib.Path(sys.argv[1]))
ledger.open({})
for number in range(20):
    ledger.append(sys.argv[2])
ledger.close({"digest": "d"})
print(type(ledger.failure).__name__)
"""


def test_a_full_disk_stops_the_ledger_not_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _FULL, str(tmp_path), LINE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ("OSError\n", "", 0) == (done.stdout, done.stderr, done.returncode)
    data = (tmp_path / "ledger.jsonl").read_bytes()
    assert 200 >= len(data)
    # Whole lines up to the limit, and nothing that would pass for the end of a run.
    assert [LINE] * 6 == data.decode().split("\n")[1:7]
    assert b"footer" not in data


def test_nothing_can_be_added_once_it_is_closed(tmp_path: Path) -> None:
    ledger = _write(tmp_path, LINE, footer={})
    before = ledger.path.read_bytes()
    ledger.append(LINE)
    assert before == ledger.path.read_bytes()


def test_a_line_that_was_written_in_part_stops_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, data: bytes) -> int:
            return len(data) - 3

        def close(self) -> None: ...

    ledger = Ledger(tmp_path)
    ledger.open({})
    assert ledger._file is not None
    ledger._file.close()
    monkeypatch.setattr(ledger, "_file", Full())
    ledger.append(LINE)
    assert "bytes were written" in str(ledger.failure)
    ledger.close(None)


def test_what_goes_on_with_a_line_without_an_end_begins_a_line(tmp_path: Path) -> None:
    path = _write(tmp_path, LINE, footer=None).path
    path.write_bytes(path.read_bytes() + b'{"task": "t", "id": "cut o')
    ledger = Ledger(tmp_path)
    ledger.open({"adapter": "again"}, resume=True)
    ledger.close(None)
    *_, torn, last = path.read_bytes().splitlines()
    assert b"cut o" == torn[-5:]
    assert "again" in str(json.loads(last))


def test_of_the_ledgers_that_were_set_aside_the_last_stay(tmp_path: Path) -> None:
    kept = [tmp_path / f"ledger-20260101T00000{number}Z.jsonl" for number in range(7)]
    for number, path in enumerate(kept):
        path.write_text("{}\n")
        os.utime(path, (number, number))
    mine = tmp_path / "ledger-mine.jsonl"
    mine.write_text("{}\n")
    _write(tmp_path, LINE, footer=None)
    ledger = _write(tmp_path, LINE, footer=None)
    assert (3, True) == (ledger.removed, mine.exists())
    assert [*kept[3:], ledger.kept] == sorted(path for path in tmp_path.glob("ledger-*.jsonl") if path != mine)
