"""What the server sees of the files of a program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pytest_lmeval.sandbox.inside import watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux")
NOBODY = 2**22 + 1


def fills(folder: Path, most: int, pid: int = NOBODY) -> bool:
    return watch.fills_disk(pid, str(folder), most)


def test_files_count_wherever_they_are(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(bytes(1 << 20))
    os.sync()

    assert fills(tmp_path, 1 << 19)
    assert not fills(tmp_path, 1 << 22)


def test_what_was_removed_and_is_still_open_counts(tmp_path: Path) -> None:
    with open(tmp_path / "a", "wb") as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        os.unlink(tmp_path / "a")

        assert fills(tmp_path, 1 << 19, os.getpid())
        assert not fills(tmp_path, 1 << 19)


def test_a_link_counts_as_itself(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "big")

    assert not fills(tmp_path / "in", 1 << 19)


def test_many_empty_files_fill_a_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_FILES", 9)
    for number in range(9):
        (tmp_path / str(number)).touch()
    before = fills(tmp_path, 1 << 30)
    (tmp_path / "more").touch()

    assert (False, True) == (before, fills(tmp_path, 1 << 30))


def test_what_is_too_deep_to_be_looked_at_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LONGEST_PATH", len(str(tmp_path)) + 4)
    (tmp_path / "abc").mkdir()
    before = fills(tmp_path, 1 << 30)
    (tmp_path / "abc" / "d").mkdir()

    assert (False, True) == (before, fills(tmp_path, 1 << 30))


def test_a_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    assert not fills(tmp_path / "missing", 1)


def test_the_clock_of_a_process_is_its_cpu_time() -> None:
    assert watch.over_cpu(os.getpid(), {"cpu_s": 0.001})
    assert not watch.over_cpu(os.getpid(), {"cpu_s": 1e6})
