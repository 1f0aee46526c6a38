"""A run moves what the run before left to ``previous/``, and a run that does not begin leaves all as it is."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.records.runfile import examples_of, read_run

if TYPE_CHECKING:
    from tests.conftest import MadeOnce, Project

REPORTS = {"leaderboard.json", "leaderboard.md", "report.html"}
TWO = ("--lm-adapter=a=model:Model", "--lm-adapter=b=model:Model")


def files(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder by their paths; locks hold nothing."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if not name.endswith(".lock")}


def without_previous(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in files(folder).items() if not name.startswith("previous")}


@pytest.fixture
def ran(project: Project, made_once: MadeOnce) -> Project:
    """Provide a project in whose ``reports`` a complete run has left its files."""
    project.prompts("say: one", "say: two", target="one")

    def fill(folder: Path) -> None:
        assert 0 == project.run("--lm-gate=none").ret
        for name in ("reports", "calls.txt"):
            shutil.move(project.path / name, folder)

    shutil.copytree(made_once("previous-reports", fill), project.path, dirs_exist_ok=True)
    return project


def test_the_reports_and_the_ledger_of_the_run_before_are_in_previous_and_can_be_compared(ran: Project) -> None:
    reports = ran.path / "reports"
    before = files(reports)
    ran.edit("tasks/t.jsonl", "say: two", "say: one")
    assert 0 == ran.run("--lm-gate=none").ret

    left = files(reports / "previous")
    assert before == {name: content for name, content in left.items() if name != "README.txt"}
    assert {*REPORTS, "ledger.jsonl"} == {*without_previous(reports)}
    result = ran.lmeval(
        "diff", "reports/previous/leaderboard.json", "reports/leaderboard.json", "--pair-by=id", "--tolerance=0"
    )
    assert 0 == result.ret, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["passes now, and did not before: 1"])


def test_previous_holds_one_run_and_what_that_run_lacked_is_not_there(ran: Project) -> None:
    reports = ran.path / "reports"
    (reports / "core.csv").write_text("of the first run")
    for _ in range(2):
        assert 0 == ran.run("--lm-gate=none").ret
    boards = [read_run(reports / folder / "leaderboard.json") for folder in ("previous", "")]
    assert [2, 2] == [len(examples_of(board)) for board in boards]
    assert {*REPORTS, "ledger.jsonl", "README.txt"} == {*files(reports / "previous")}


def test_an_incomplete_run_leaves_the_older_ledger_where_it_was(ran: Project) -> None:
    ran.write("conftest.py", "import os\ndef pytest_runtest_teardown():\n    os.kill(os.getpid(), 9)\n")
    before = files(ran.path / "reports")
    ran.run("--lm-gate=none")
    (ran.path / "conftest.py").unlink()
    now = files(ran.path / "reports")
    assert {f"previous/{name}" for name in {*REPORTS, "README.txt"}} == {n for n in now if n.startswith("previous/")}
    [kept] = [name for name in now if name.startswith("ledger-")]
    assert before["ledger.jsonl"] == now[kept]

    assert 0 == ran.run("--lm-gate=none", "--lm-resume").ret
    resumed = files(ran.path / "reports")
    assert before["leaderboard.json"] == resumed["previous/leaderboard.json"]
    assert resumed["ledger.jsonl"].startswith(now["ledger.jsonl"])


def test_a_run_that_is_resumed_goes_on_with_its_ledger_and_its_reports_are_in_previous(ran: Project) -> None:
    before = files(ran.path / "reports")
    assert 0 == ran.run("--lm-gate=none", "--lm-resume").ret
    now = files(ran.path / "reports")
    assert now["ledger.jsonl"].startswith(before["ledger.jsonl"])
    assert before["leaderboard.json"] == now["previous/leaderboard.json"]
    assert "previous/ledger.jsonl" not in now


@pytest.mark.parametrize(
    "arguments",
    [
        ["--collect-only"],
        ["-k", "no-example"],
        ["--lm-adapter=openai:gpt"],
        ["--lm-baseline=none.json"],
        ["bad"],
        ["--setup-only"],
    ],
    ids=" ".join,
)
def test_a_run_without_an_example_touches_nothing(ran: Project, arguments: list[str]) -> None:
    ran.write("bad/t.jsonl", '{"prompt": 1}\n')
    before = files(ran.path / "reports")
    ran.run("tasks", *arguments)
    assert before == files(ran.path / "reports")


@pytest.mark.parametrize("given", [(), TWO], ids=["one", "two"])
def test_a_run_into_the_folder_of_another_one_touches_nothing(ran: Project, given: tuple[str, ...]) -> None:
    assert 0 == ran.run(*given, "--lm-gate=none").ret
    before = files(ran.path / "reports")
    # The last of several: those of the others are free.
    with (ran.path / "reports" / ("b" if given else "") / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = ran.run(*given)
    assert 4 == refused.ret
    assert "in use by another run" in refused.stdout.str() + refused.stderr.str()
    assert before == files(ran.path / "reports")


def test_previous_of_several_models_has_the_layout_of_their_reports(ran: Project) -> None:
    reports = ran.path / "reports"
    assert 0 == ran.run(*TWO, "--lm-gate=none").ret
    assert REPORTS | {"README.txt"} == {*files(reports / "previous")}
    before = without_previous(reports)
    assert 0 == ran.run(*TWO, "--lm-gate=none").ret

    left = files(reports / "previous")
    assert {name: left[name] for name in left if name != "README.txt"} == {
        name: content for name, content in before.items() if name != "ledger.jsonl"
    }
    assert {"a/ledger.jsonl", "b/leaderboard.json", "comparison.json"} <= {*left}
    # Below the report dir they are no further runs; named, they are those of the run before.
    for folder in ("reports", "reports/previous"):
        ranked = ran.lmeval("rank", folder)
        assert 0 == ranked.ret, ranked.stderr.str()
        ranked.stdout.fnmatch_lines(["a and b have the same score*", "scores are over the 2 example*"])


def test_a_selection_leaves_its_own(ran: Project) -> None:
    for _ in range(2):
        assert 0 == ran.run("-k", "e0", "--lm-gate=none").ret
    now = files(ran.path / "reports")
    assert {"previous/selection/leaderboard.json", "selection/leaderboard.json", "leaderboard.json"} <= {*now}
    assert "previous/leaderboard.json" not in now


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_previous_that_no_run_made_is_refused_before_anything_is_asked(ran: Project, kind: str) -> None:
    place = ran.path / "reports/previous"
    if kind == "file":
        place.write_text("mine")
    elif kind == "link":
        (ran.path / "mine").mkdir()
        place.symlink_to(ran.path / "mine")
    else:
        ran.write("reports/previous/leaderboard.json", "mine")
    asked, before = ran.calls(), files(ran.path / "reports")
    result = ran.run("--lm-gate=none")
    assert 4 == result.ret
    what = "holds files that no run wrote" if kind == "folder" else "is not a folder"
    result.stderr.fnmatch_lines([f"*reports/previous: {what}, and the reports of the last run belong there; rename it"])
    assert (asked, before) == (ran.calls(), files(ran.path / "reports"))


def test_a_folder_in_the_place_of_a_report_is_refused_before_anything_is_asked(ran: Project) -> None:
    ran.run("--lm-gate=none")
    (ran.path / "reports/previous/leaderboard.json").unlink(missing_ok=True)
    (ran.path / "reports/previous/leaderboard.json").mkdir()
    asked = ran.calls()
    result = ran.run("--lm-gate=none")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*cannot be moved to *previous*leaderboard.json*choose another report dir"])
    assert asked == ran.calls()


def test_what_is_left_by_a_run_that_died_while_it_wrote_is_not_mixed_with_an_earlier_run(ran: Project) -> None:
    before = files(ran.path / "reports")
    assert 0 == ran.run("--lm-gate=none").ret
    for name in ("leaderboard.json", "ledger.jsonl"):
        (ran.path / "reports" / name).unlink()
    assert 0 == ran.run("--lm-gate=none").ret
    left = files(ran.path / "reports/previous")
    assert before == {name: content for name, content in left.items() if name != "README.txt"}


def test_a_baseline_that_the_run_moves_is_refused(ran: Project) -> None:
    assert 0 == ran.run("--lm-gate=none").ret
    before = files(ran.path / "reports")
    result = ran.run("--lm-baseline=reports/previous/leaderboard.json")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*previous/leaderboard.json: this run writes that file itself, or moves*"])
    assert before == files(ran.path / "reports")


@pytest.mark.parametrize("folder", ["reports", "reports/previous"])
def test_a_recording_is_read_before_it_is_moved_and_workers_may_not_read_one_that_is(ran: Project, folder: str) -> None:
    assert 0 == ran.run("--lm-gate=none").ret
    digest, asked = ran.board()["digest"], ran.calls()
    replayed = f"--lm-adapter=replay:{folder}/ledger.jsonl"
    refused = ran.run(replayed, "--lm-gate=none", "-n2")
    assert 4 == refused.ret
    refused.stderr.fnmatch_lines(["*this run replaces that file while its workers read it*"])
    assert 0 == ran.run(replayed, "--lm-gate=none").ret
    assert (digest, asked) == (ran.board()["digest"], ran.calls())


@pytest.mark.parametrize("given", [(), TWO], ids=["one", "two"])
def test_the_board_has_the_id_that_whoever_started_the_run_gave_it(
    ran: Project, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LMEVAL_RUN_ID", "run-1.a_B")
    assert 0 == ran.run(*given, "--lm-gate=none").ret
    found = json.loads((ran.path / "reports" / ("comparison.json" if given else "leaderboard.json")).read_text())
    assert "run-1.a_B" == (found if given else found["manifest"])["run_id"]


@pytest.mark.parametrize("given", ["two\nlines", "::error::x", "x" * 65])
def test_an_id_that_is_no_name_is_refused(ran: Project, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("LMEVAL_RUN_ID", given)
    before = files(ran.path / "reports")
    result = ran.run("--lm-gate=none")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*LMEVAL_RUN_ID: expected at most 64 letters, digits and _.-, got *"])
    assert before == files(ran.path / "reports")
