"""The border to files that are written: devices and pipes are written to, a link's target is, the rest is refused."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_lmeval.atomic import write_atomically
from tests.border.table import Border, Row, check, refused_run, run_of_its_own
from tests.conftest import BOTH, Project, RunModule

LINE = '{"id": "a", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}\n'
# What is in the way of a report is made by the project itself, before the run.
PLACED = """
import os, pathlib, socket
os.makedirs("reports", exist_ok=True)
os.makedirs("elsewhere", exist_ok=True)
def bound(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
def place(name, how):
    if not os.path.lexists("reports/" + name):
        how("reports/" + name)
"""


def placed(*lines: str) -> dict[str, str]:
    return {"conftest.py": PLACED + "\n".join(lines)}


LINKS = placed(
    'place("leaderboard.md", lambda path: os.symlink("../elsewhere/board.md", path))',
    'place("report.html", lambda path: os.symlink("../elsewhere/page.html", path))',
    'pathlib.Path("elsewhere/page.html").write_text("an older page")',
    "import sys",
    "def pytest_unconfigure(config):",
    "    kept = [pathlib.Path('reports', name) for name in ('notes.txt', 'previous/notes.txt')]",
    "    kept = [path.read_text() for path in kept if path.exists()]",
    "    print('kept:', ', '.join(kept), file=sys.stderr)",
)
REFUSED = "is no regular file, device or pipe"
BORDER = Border(
    name="written file",
    files={"tasks/t.jsonl": LINE, **LINKS},
    rows=(
        Row(kind="absent", what="a link that leads to no file is written through", says="Overall", on=("markdown",)),
        Row(kind="same name", what="a link to an older page", says="leaderboard", on=("page",), unsaid="an older page"),
        refused_run(
            "wrong type",
            "a folder in the place of Markdown",
            REFUSED,
            code=1,
            files=placed('place("leaderboard.md", os.mkdir)'),
        ),
        refused_run(
            "raising",
            "a link to itself",
            "symbolic links",
            code=1,
            files=placed('place("leaderboard.md", lambda path: os.symlink("leaderboard.md", path))'),
        ),
        refused_run(
            "out of order",
            "a socket in the place of the page",
            REFUSED,
            code=1,
            files=placed('place("report.html", bound)'),
        ),
        # The board that is there is the earlier run's.
        run_of_its_own(
            "earlier run",
            "a file in the place of the folder for its reports",
            code=4,
            says="reports/previous: is not a folder",
            on=("terminal",),
            files=placed(
                'place("leaderboard.json", lambda path: pathlib.Path(path).touch())',
                'place("previous", lambda path: pathlib.Path(path).touch())',
            ),
        ),
        refused_run(
            "environment",
            "an id of the run that is an order to a runner",
            "LMEVAL_RUN_ID: expected at most 64 letters",
            code=4,
            environment={"LMEVAL_RUN_ID": "::add-mask::x"},
        ),
        run_of_its_own(
            "empty",
            "the null device in the place of Markdown",
            files=placed('place("leaderboard.md", lambda path: os.symlink("/dev/null", path))'),
            example="t:a",
            status="passed",
        ),
        Row(
            kind="beside",
            what="a file of the user's in the folder of the reports",
            files={"reports/notes.txt": "of the user", "reports/previous/notes.txt": "as well"},
            says="kept: of the user, as well",
            on=("terminal",),
        ),
        run_of_its_own(
            "changed unseen",
            "a test that removes the reports while the run goes on",
            files={"conftest.py": "", "test_a.py": "import shutil\ndef test_a(): shutil.rmtree('reports')\n"},
            says="leaderboard: reports/leaderboard.json",
            on=("terminal",),
        ),
        Row(
            kind="kept client", never="files are written once all examples have ended, and no client of theirs is left"
        ),
        Row(kind="too large", never="a full disk: tests/plugin/record/test_unwritable_reports.py"),
        Row(kind="not finite or negative", never="what is written is checked where the board is made"),
        Row(kind="control characters", never="what is written is checked where it is rendered"),
        Row(kind="twice", never="a second run of one report dir is refused by the ledger's lock"),
        Row(kind="late", never="a reader of a pipe may come late: test_a_pipe_may_be_opened_late"),
        Row(kind="cancelled", never="a pipe that nobody reads: test_a_pipe_that_nobody_reads_is_refused"),
        Row(kind="secret", never="what is written is scrubbed before it is rendered"),
    ),
)


@pytest.mark.parametrize("processes", BOTH)
def test_the_border(tmp_path: Path, run_module: RunModule, processes: str) -> None:
    check(BORDER, tmp_path, run_module, processes)
    shared = tmp_path / "shared"
    assert (shared / "reports/report.html").is_symlink()
    assert (shared / "elsewhere/board.md").is_file()
    assert not (shared / "elsewhere/page.html").is_symlink()


def test_lmeval_writes_to_pipes_and_devices_and_through_links(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.run()
    os.symlink("/dev/null", project.path / "null")
    command = [sys.executable, "-mpytest_lmeval.cli"]
    made = subprocess.run(
        [*command, "report", "reports/ledger.jsonl", "-o", "/dev/stdout"], cwd=project.path, capture_output=True
    )
    assert (0, True) == (made.returncode, made.stdout.startswith(b"<!"))
    assert 0 == project.lmeval("report", "reports/ledger.jsonl", "-o", "null").ret
    assert 0 == project.lmeval("baseline", "accept", "reports/ledger.jsonl", "-o", "null").ret
    assert stat.S_ISCHR(os.stat(project.path / "null").st_mode)
    (project.path / "folder").mkdir()
    done = project.lmeval("report", "reports/ledger.jsonl", "-o", "folder")
    assert 2 == done.ret
    done.stderr.fnmatch_lines([f"*-o folder: cannot be written: {REFUSED}*"])


def test_a_pipe_may_be_opened_late(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["sh", "-c", f"sleep 0.2; cat '{pipe}'"], stdout=subprocess.PIPE)
    write_atomically(pipe, b"x" * 50_000)
    assert 50_000 == len(reader.communicate()[0])
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("pytest_lmeval.atomic._READER_WITHIN_S", 0.05)
    with pytest.raises(OSError, match="is a pipe without a reader"):
        write_atomically(tmp_path / "pipe", b"x")


def test_the_target_of_a_link_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target, link = tmp_path / "there/file", tmp_path / "link"
    link.symlink_to("there/file")
    write_atomically(link, b"one")
    before = target.stat().st_ino
    write_atomically(link, b"two")
    assert (True, b"two", ["file"]) == (link.is_symlink(), target.read_bytes(), os.listdir(tmp_path / "there"))
    assert before != target.stat().st_ino
