"""``lmeval validate FOLDER`` of lm-evaluation-harness: which modules are imported, and what a terminal shows."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Project

TASK = """
task: NAME
dataset_path: made/rows
test_split: test
doc_to_text: q
doc_to_target: a
process_docs: !function NAME.docs
"""
GOOD = "print('imported')\n\ndef docs(given):\n    return given\n"
BAD = "from helper_own import other\n\ndef docs(given):\n    return given\n"


@pytest.fixture
def folder(project: Project) -> Project:
    for name, code in (("good", GOOD), ("bad", BAD)):
        project.write(f"given/{name}/{name}.yaml", TASK.replace("NAME", name))
        project.write(f"given/{name}/{name}.py", code)
    project.write("given/bad/helper_own.py", "")
    return project


def test_modules_are_imported_if_that_is_wanted_and_their_folder_is_trusted(folder: Project) -> None:
    result = folder.lmeval("validate", "given")
    assert 0 == result.ret
    assert "nothing known against 2 (100.0%)" in result.stdout.str()
    assert "not imported: 2 module(s) with functions; --import imports those in trusted paths" in result.stdout.str()
    assert "" == result.stderr.str()

    result = folder.lmeval("validate", "given", "--import")
    assert 1 == result.ret
    assert "bad.py beside bad/: ImportError: cannot import name 'other' from 'bad.helper_own' " in result.stdout.str()
    assert "nothing known against 1 (50.0%)" in result.stdout.str()
    assert "not imported" not in result.stdout.str()
    assert "imported" == result.stderr.str()
    told = json.loads(folder.lmeval("validate", "given", "--import", "--format=json").stdout.str())
    assert {"found": 2, "imported": 2} == told["modules"]

    folder.write("pytest.ini", "[pytest]\nlm_trusted_paths = given/good\n")
    result = folder.lmeval("validate", "given", "--import")
    assert 0 == result.ret
    assert "not imported: 1 module(s) with functions; they are outside of the trusted paths" in result.stdout.str()


def test_files_whose_suffix_is_not_read_are_named(project: Project) -> None:
    project.write("given/t.yml", TASK.replace("NAME", "t"))
    project.write("given/rows.jsonl", '{"q": 1}\n')
    result = project.lmeval("validate", "given")
    assert 0 == result.ret
    assert "given/t.yml: t: not read: task files end in .yaml\n" in result.stdout.str()
    told = json.loads(project.lmeval("validate", "given", "--format=json").stdout.str())
    assert ["t"] == [each["task"] for each in told["not_read"]]


def test_the_import_is_for_folders_of_the_harness(project: Project) -> None:
    project.task("t")
    result = project.lmeval("validate", "tasks", "--import")
    assert 2 == result.ret
    assert "--import takes one folder of lm-evaluation-harness" in result.stderr.str()


def test_a_terminal_shows_how_far_the_check_is(folder: Project) -> None:
    assert b"reading the files of the folder \r0 of 2 tasks checked" in of_a_terminal(folder.path)
    assert "checked" not in folder.lmeval("validate", "given").stderr.str()


def of_a_terminal(path: Path) -> bytes:
    """Return what the command writes to standard error, if that is a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        command = [sys.executable, "-m", "pytest_lmeval", "validate", "given"]
        subprocess.run(command, cwd=path, stderr=theirs, stdout=subprocess.DEVNULL, check=True, timeout=60)
        os.close(theirs)
        return terminal.read(10_000)
