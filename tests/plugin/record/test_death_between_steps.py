"""A run that dies between two of its steps, however it dies, is not green, and is resumed without asking again.

The expected outcomes are those of the table in docs/resume.md: the page and the tests cannot drift apart.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.records.runfile import read_run

if TYPE_CHECKING:
    from tests.conftest import MadeOnce, Project

EXAMPLES = 6
PAGE = Path(__file__).parents[3] / "docs/resume.md"
PLUGIN, LEDGER = "pytest_lmeval.plugin.record.", "pytest_lmeval.records.ledger:Ledger."
FILES = f"{PLUGIN}report_files:"
# What reaches each point: before or after the call of that number of a function, or a hook of the project.
POINTS = {
    "while examples are collected": ("hook", "pytest_collection_modifyitems", 1),
    "before the older reports are moved": ("before", f"{FILES}ReportFiles.set_aside_old", 1),
    "before the older ledger is renamed": ("after", f"{FILES}ReportFiles.set_aside_old", 1),
    "before the ledger's first line": ("after", f"{LEDGER}_set_aside", 1),
    "after the ledger's first line": ("after", f"{LEDGER}open", 1),
    "after the first answer": ("after", "model:Model.generate", 1),
    "between the third answer and its line": ("before", f"{PLUGIN}records:RunRecord._keep", 3),
    "in the middle of the third answer's line": ("torn", f"{LEDGER}_write", 1 + 3),
    "after the third answer's line": ("after", f"{LEDGER}append", 3),
    "after the last answer's line": ("after", f"{LEDGER}append", EXAMPLES),
    "before the results are judged": ("before", f"{PLUGIN}records:RunRecord.finish", 1),
    "before the baseline is written": ("before", f"{FILES}ReportFiles.update_baseline", 1),
    "after the baseline is written": ("after", f"{FILES}ReportFiles.update_baseline", 1),
    "before the ledger's footer": ("before", f"{LEDGER}_write", 1 + EXAMPLES + 2),
    "before `leaderboard.md`": ("after", f"{LEDGER}close", 1),
    "before `report.html`": ("after", f"{FILES}write_atomically", 2),
    "before `leaderboard.json`": ("before", f"{FILES}write_leaderboard", 1),
    "in the middle of `leaderboard.json`": ("before", "pytest_lmeval.atomic:os.replace", 4),
    "before the step summary": ("before", "pytest_lmeval.report.github:add_step_summary", 1),
    "in `pytest_lmeval_leaderboard`": ("hook", "pytest_lmeval_leaderboard", 1),
    "in `pytest_sessionfinish`": ("hook", "pytest_sessionfinish", 1),
    "in `pytest_terminal_summary`": ("hook", "pytest_terminal_summary", 1),
    "in `pytest_unconfigure`": ("hook", "pytest_unconfigure", 1),
}
# Each kind of death, and the column of the table that it belongs to.
KINDS = {
    "SIGKILL": 0,
    "os._exit": 1,
    "os._exit in two threads": 1,
    "os._exit twice": 2,
    "sys.exit": 3,
    "pytest.exit": 4,
    "exception": 5,
    "Ctrl-C": 6,
}
WOUND_UP = ("sys.exit", "pytest.exit", "exception", "Ctrl-C")
OPTIONS = ("--lm-baseline=base.json", "--lm-update-baseline", "--lm-batch-size=2", "-pno:cacheprovider", "-q")


def read_table() -> dict[str, list[str]]:
    """Return the cells of the table in the docs by what its rows begin with."""
    lines = re.findall(r"^\| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return {first: cells for first, *cells in rows if len(cells) == 8 and first not in ("---", "the run ends")}


TABLE = read_table()
CELLS = [(point, kind) for point in POINTS for kind, column in KINDS.items() if TABLE[point][column] != "-"]
# All of them take minutes: every seventh meets each point and each kind.
CHOSEN = [
    *[(point, kind, "-n0") for point, kind in CELLS[::7]],
    ("after the third answer's line", "SIGKILL", "-n2"),
    ("before the results are judged", "sys.exit", "-n2"),
    ("before `leaderboard.json`", "os._exit in two threads", "-n2"),
]
# Most of the way a death is as the others at its point: every third of those, and one of a worker's, by default.
OFTEN = [case for number, case in enumerate(CHOSEN) if number % 3 == 0]


def test_the_table_of_the_docs_has_every_point() -> None:
    assert list(POINTS) == list(TABLE)
    assert {*POINTS} == {point for point, _, processes in CHOSEN if processes == "-n0"}
    assert {*KINDS} == {kind for _, kind, processes in CHOSEN if processes == "-n0"}


@pytest.fixture
def earlier(project: Project, made_once: MadeOnce) -> Project:
    """Provide six examples with the reports of an earlier run, and what lets the next run die."""
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", f"w{number}") for number in range(EXAMPLES)])

    def fill(folder: Path) -> None:
        assert 0 == project.run(*OPTIONS[2:]).ret
        (project.path / "calls.txt").unlink()
        project.board()
        shutil.move(project.path / "reports", folder)

    shutil.copytree(made_once("earlier-than-death", fill) / "reports", project.path / "reports")
    project.copy("death_between_steps", "conftest.py")
    return project


def outcome(project: Project, ret: int, before: bytes) -> str:
    """Return how the run ended and what its board says, as the table has it."""
    code = {-signal.SIGKILL: "137", -signal.SIGINT: "130"}.get(ret, str(ret))
    path = project.path / "reports/leaderboard.json"
    if not path.exists():
        return f"{code} none"
    if before == path.read_bytes():
        return f"{code} older"
    return f"{code} {'whole' if project.board()['complete'] else 'partial'}"


def older_results(project: Project, before: bytes) -> bool:
    """Tell whether a ledger in the report dir begins with what the earlier run wrote."""
    return any(path.read_bytes().startswith(before) for path in project.path.glob("reports/ledger*.jsonl"))


@pytest.mark.parametrize(
    ("point", "kind", "processes"),
    [
        *OFTEN,
        *[pytest.param(*case, marks=pytest.mark.again) for case in CHOSEN if case not in OFTEN],
    ],
)
def test_a_run_that_dies_is_not_green_and_is_resumed(
    earlier: Project, point: str, kind: str, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(earlier.path / "summary.md"))
    when, place, number = POINTS[point]
    earlier.write("fault.json", json.dumps({"when": when, "place": place, "number": number, "kind": kind}))
    board, ledger = ((earlier.path / "reports" / name).read_bytes() for name in ("leaderboard.json", "ledger.jsonl"))
    ret = int(earlier.run(*OPTIONS, processes).ret)
    found = outcome(earlier, ret, board)
    expected, _, asked = TABLE[point][KINDS[kind]].partition(", ")
    assert expected == found
    assert "whole" in found or older_results(earlier, ledger)
    if processes != "-n0":
        # A worker outlives a killed controller for a moment, and notes the batch that it was asking.
        time.sleep(1)
    for name in ("fault.json", "calls.txt"):
        (earlier.path / name).unlink(missing_ok=True)
    assert 0 == earlier.run(*OPTIONS, "--lm-resume").ret
    most, again = int(asked or TABLE[point][-1]), sum(map(len, earlier.calls()))
    # What has arrived ahead of its turn is kept by a run that is wound up, and by the workers of one that is killed.
    is_kept = processes != "-n0" or ("partial" in found and kind in WOUND_UP)
    assert again <= most if is_kept else again == most
    assert earlier.board()["complete"]
    assert json.loads(board)["digest"] == earlier.board()["digest"]
    run = read_run(earlier.path / "reports/ledger.jsonl")
    assert (True, True) == (run.complete, run.agrees)
