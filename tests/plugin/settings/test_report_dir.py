"""Where a run writes, and whose board it leaves alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import MadeOnce, Project


@pytest.mark.parametrize(
    "picks",
    [
        ["-k", "blue", "-n2"],
        ["--lf"],
        ["tasks/words.jsonl::red"],
        ["--deselect=tasks/words.jsonl::red"],
    ],
)
def test_a_run_of_some_examples_leaves_the_board_of_the_whole_run_and_says_where_it_writes(
    project: Project, picks: list[str], made_once: MadeOnce
) -> None:
    project.small_tasks()

    def fill(folder: Path) -> None:
        project.run()
        for name in ("reports", ".pytest_cache"):
            shutil.move(project.path / name, folder)

    shutil.copytree(made_once("report-dir-whole", fill), project.path, dirs_exist_ok=True)
    whole = [path.read_bytes() for path in _files(project)]
    ran = project.run(*picks)
    assert whole == [path.read_bytes() for path in _files(project)]
    ran.stdout.fnmatch_lines(
        [
            "reports of this selection: reports/selection; the whole run's board is unchanged",
            "leaderboard: reports/selection/leaderboard.json",
        ]
    )
    assert project.board("reports/selection")["counts"]["collected"] < 5


def _files(project: Project) -> list[Path]:
    return [project.path / "reports" / name for name in ("leaderboard.json", "leaderboard.md", "ledger.jsonl")]


def test_a_selection_with_nothing_to_leave_alone_writes_to_the_report_dir(project: Project) -> None:
    project.small_tasks()
    project.run("-k", "blue")
    project.run("-k", "blue")
    assert 1 == project.board()["counts"]["collected"]
    assert not (project.path / "reports/selection").exists()


def test_what_picks_all_examples_is_a_whole_run(project: Project) -> None:
    project.small_tasks()
    project.task("tasks/arithmetic.jsonl", project.spec("arith_1", "4"))
    assert 0 == project.run().ret
    project.run("--lf").stdout.fnmatch_lines(["leaderboard: reports/leaderboard.json"])


def test_an_interrupted_selection_is_completed_where_it_is(project: Project) -> None:
    project.small_tasks()
    project.run()
    for _ in range(2):
        ran = project.run("-k", "arith", "--lm-resume")
        assert 3 == project.board("reports/selection")["counts"]["collected"]
    ran.stdout.fnmatch_lines(["resumed: reused 3 answer(s) of the run of *"])


def test_reports_go_below_the_root_wherever_the_command_is_given(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.small_tasks()
    (project.path / "deeper").mkdir()
    monkeypatch.chdir(project.path / "deeper")
    project.run("../tasks", "--rootdir=..")
    assert (project.path / "reports/leaderboard.json").exists()
    assert not (project.path / "deeper/reports").exists()
    project.run("../tasks", "--rootdir=..", "--lm-report-dir=here")
    assert (project.path / "deeper/here/leaderboard.json").exists()
