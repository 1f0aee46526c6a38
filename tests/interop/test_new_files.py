"""All that is imported and converted is written by one class, which replaces nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import NewFiles
from tests.conftest import Project
from tests.test_imports_go_down import PACKAGE


def test_the_same_files_are_left_alone_and_none_of_other_content_is_replaced(tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("mine")
    inode = old.stat().st_ino
    with pytest.raises(UsageError, match=r"old.txt: exists with other content; move it away"):
        NewFiles(tmp_path, {"new.txt": b"new", "old.txt": b"yours"}).write()
    assert (False, "mine") == (new.exists(), old.read_text())
    assert [old, new] == NewFiles(tmp_path, {"old.txt": b"mine", "new.txt": b"new"}).write()
    assert (inode, "new") == (old.stat().st_ino, new.read_text())
    with pytest.raises(UsageError, match=r"old.txt.*: cannot be written: "):
        NewFiles(old, {"a.txt": b""}).write()


def test_a_name_is_that_of_one_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"A.txt: two files would have this name \(a.txt is the first\)"):
        NewFiles(tmp_path, {"a.txt": b"", "A.txt": b""})


def test_a_file_of_another_content_ends_the_command(project: Project) -> None:
    project.copy("promptfoo")
    project.write("out/chat.yaml", "mine: 1\n")
    assert 2 == project.lmeval("import", "promptfoo", "chat.yaml", "-o", "out").ret
    assert "mine: 1\n" == (project.path / "out/chat.yaml").read_text()


def test_nothing_else_beneath_interop_writes_a_file() -> None:
    written = ("write_atomically(", "write_text(", "write_bytes(", 'open("w', "mkdir(")
    paths = [path for path in (PACKAGE / "interop").rglob("*.py") if any(map(path.read_text().count, written))]
    assert [PACKAGE / "interop" / "files.py"] == paths
