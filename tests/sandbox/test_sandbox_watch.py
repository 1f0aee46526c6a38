"""What the server sees of the files of a program."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_lmeval.sandbox.inside import watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confined needs Linux")
NOBODY = 2**22 + 1


def fills(folder: Path, most: int, pid: int = NOBODY, largest: int = 1 << 20) -> bool:
    return watch.fills_disk(pid, str(folder), most, largest)


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


def test_what_was_removed_and_closed_and_is_still_mapped_counts_as_the_largest_file(tmp_path: Path) -> None:
    with mapped_without_descriptor(tmp_path / "a\nb"):
        assert fills(tmp_path, 1 << 19, os.getpid())
        assert not fills(tmp_path, 1 << 21, os.getpid())
        assert not fills(tmp_path / "elsewhere", 1 << 19, os.getpid())
    assert not fills(tmp_path, 1 << 19, os.getpid())


def test_what_was_removed_and_is_open_and_mapped_counts_once_with_its_size(tmp_path: Path) -> None:
    with open(tmp_path / "a", "w+b") as file:
        file.write(bytes(1 << 14))
        file.flush()
        os.fsync(file.fileno())
        with mmap.mmap(file.fileno(), 0):
            os.unlink(tmp_path / "a")

            assert not fills(tmp_path, 1 << 18, os.getpid())


@contextlib.contextmanager
def mapped_without_descriptor(path: Path) -> Iterator[None]:
    """Keep a page of a removed file mapped, as Python's own mmap can't: it keeps a descriptor, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    path.write_bytes(bytes(mmap.PAGESIZE))
    with open(path, "r+b") as file:
        address = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    assert address not in (None, ctypes.c_void_p(-1).value)
    path.unlink()
    try:
        yield
    finally:
        libc.munmap(address, mmap.PAGESIZE)


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
