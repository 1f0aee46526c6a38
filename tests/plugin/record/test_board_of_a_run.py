"""The board says what the run found out, and says the same however the run was split."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
from typing import Any

import pytest

from tests import needs
from tests.conftest import BOTH, Project


def test_a_row_tells_score_counts_and_where_the_task_is_from(small: Project) -> None:
    small.run()
    arithmetic, words = small.board()["tasks"]
    assert "tasks/arithmetic.jsonl" == arithmetic["path"]
    assert hashlib.sha256((small.path / "tasks/arithmetic.jsonl").read_bytes()).hexdigest() == arithmetic["sha256"]
    assert math.isclose(2 / 3, arithmetic["score"])
    assert (2, 3, 1.0, "exact_match") == tuple(arithmetic[key] for key in ("correct", "total", "threshold", "metric"))
    low, high = arithmetic["ci95"]
    assert 0.0 <= low < 2 / 3 < high <= 1.0
    assert (1.0, 0.0) == (words["score"], words["stderr"])
    assert words["latency_ms"] >= 0


@pytest.mark.command_line
def test_the_whole_of_a_board(small: Project) -> None:
    small.run()
    board = small.board()
    assert board["complete"]
    assert math.isclose((2 / 3 + 1) / 2, board["overall_score"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", board["timestamp"])
    assert "stub.v1" == board["adapter"]
    expected = {"collected": 5, "scored": 5, "errors": 0, "timeouts": 0, "excluded": 0}
    assert {**expected, "skipped": 0, "missing": 0, "unparsed": 0, "below": 0} == board["counts"]
    assert {"score": pytest.approx(2 / 3), "total": 3} == board["categories"]["arithmetic"]
    assert ("examples", "examples") == (board["gate"]["mode"], board["gate"]["verdict"])
    text = (small.path / "reports/leaderboard.json").read_text("utf-8")
    assert text == json.dumps(board, indent=2, ensure_ascii=False) + "\n"
    assert "core_score" not in board
    assert "bad_records" not in board
    assert "arithmetic" in (small.path / "reports/leaderboard.md").read_text("utf-8")


def test_the_digest_is_the_documented_hash(small: Project) -> None:
    small.run("--lm-include-per-example")
    board = small.board()
    entries = [
        [row["task"], record["id"], record["hash"], [record["output"]], record["score"]]
        for row in board["tasks"]
        for record in row["per_example"]
    ]
    lines = sorted(json.dumps(entry, separators=(",", ":")) for entry in entries)
    assert hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest() == board["digest"]


def test_records_of_examples_are_written_on_demand(small: Project) -> None:
    small.run()
    assert not any("per_example" in row for row in small.board()["tasks"])
    small.run("--include-per-example", "-n2")
    record = small.examples()["arithmetic:arith_2"]
    assert ("say: 5", "5", "5", ["4"]) == tuple(record[key] for key in ("prompt", "prediction", "output", "targets"))
    assert (0.0, "failed") == (record["score"], record["status"])
    assert re.fullmatch("[0-9a-f]{64}", record["hash"])
    assert record["latency_ms"] >= 0


def test_a_threshold_of_a_task_beats_that_of_its_metric_and_both_beat_the_record(project: Project) -> None:
    for task in ("a", "b"):
        half = project.record("half", "one two", target="one three", metric="f1", threshold=0.9)
        project.task(f"tasks/{task}.jsonl", half)
    assert 1 == project.run().ret
    assert 1 == project.run("--lm-threshold=f1=0.4", "--lm-threshold=b=0.6").ret
    assert [(0.4, 1), (0.6, 0)] == [(row["threshold"], row["correct"]) for row in project.board()["tasks"]]
    ini = "[pytest]\nlm_thresholds =\n    f1=0.4\n"
    project.write("pytest.ini", ini)
    assert 0 == project.run("-n2").ret
    assert 1 == project.run("--lm-threshold=f1=0.6").ret


def test_a_task_that_mixes_metrics_says_so_and_is_broken_down(project: Project) -> None:
    records = [
        project.spec("sum", "4"),
        project.spec("gist", "red fox", target="red hen", category="summary", metric_name="f1"),
    ]
    project.task("tasks/mix.jsonl", *records)
    project.run()
    board = project.board()
    (row,) = board["tasks"]
    assert "mixed" == row["metric"]
    assert {"exact_match": 1.0, "f1": 0.5, "subject_mean": 0.75} == row["metrics"]
    assert {"arithmetic": {"score": 1.0, "total": 1}, "summary": {"score": 0.5, "total": 1}} == board["categories"]


def read_ledger(project: Project) -> list[dict[str, Any]]:
    text = (project.path / "reports/ledger.jsonl").read_text("ascii")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("processes", BOTH)
def test_the_ledger_has_a_header_a_line_an_example_the_run_and_a_footer(small: Project, processes: str) -> None:
    small.run(processes)
    header, *results, run, footer = read_ledger(small)
    assert "pytest-lmeval/ledger/2" == header["header"]["schema"]
    ids = {(result["task"], result["id"]) for result in results}
    assert 5 == len(results) == len(ids)
    assert {"arithmetic", "words"} == {task for task, _ in ids}
    assert ["arithmetic", "words"] == sorted(task["name"] for task in run["run"]["tasks"])
    assert "stub.v1" == run["run"]["facts"]["adapter"]
    assert small.board()["digest"] == footer["footer"]["digest"]


def test_a_run_can_be_replayed_from_what_it_wrote(small: Project) -> None:
    small.run("--lm-include-per-example")
    original = small.board()
    (small.path / "reports").rename(small.path / "kept")
    for source, processes in (("ledger.jsonl", "-n2"), ("leaderboard.json", "-n0")):
        again = ("--lm-adapter=replay:kept/" + source, f"--lm-report-dir=from {source}", processes)
        small.run_pytest(*again).assert_outcomes(passed=4, failed=1)
        assert original["digest"] == small.board(f"from {source}")["digest"]


def test_the_table_is_shown_at_the_end(small: Project) -> None:
    result = small.run()
    result.stdout.fnmatch_lines(
        ["*leaderboard: stub.v1*", "arithmetic *exact_match *0.6667*2/3*", "words *1.0000*2/2*", "overall *0.8333*"]
    )
    result.stdout.fnmatch_lines(["leaderboard: reports/leaderboard.json", "HTML report: reports/report.html"])


def test_git_is_asked_once_and_ledger_and_board_say_the_same(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    git = small.write("bin/git", '#!/bin/sh\necho "$1" >> "$GIT_LOG"\necho "# branch.oid 0123abc"\necho 1 .M file\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(git.parent), prepend=os.pathsep)
    monkeypatch.setenv("GIT_LOG", str(small.path / "asked.txt"))
    small.run()
    assert not (small.path / "asked.txt").exists()  # not where no folder above is a repository
    assert small.board()["manifest"]["git"] is None
    small.write(".git", "gitdir: elsewhere\n")
    small.run()
    assert ["status"] == (small.path / "asked.txt").read_text().split()
    header = json.loads((small.path / "reports/ledger.jsonl").read_text("utf-8").splitlines()[0])["header"]
    assert {"commit": "0123abc", "dirty": True} == header["manifest"]["git"]
    assert header["manifest"].items() <= small.board()["manifest"].items()


def test_the_board_says_the_commit_and_whether_files_differ_from_it(small: Project) -> None:
    if shutil.which("git") is None:
        needs.lacking("git", "needs git")

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        command = ["git", *who, *arguments]
        return subprocess.run(command, cwd=small.path, check=True, capture_output=True, text=True).stdout.strip()

    def said(*options: str) -> object:
        small.run(*options).assert_outcomes(passed=4, failed=1)
        return small.board()["manifest"]["git"]

    git("init", "--quiet")
    assert said() is None  # nothing is committed
    git("add", "tasks")
    git("commit", "--quiet", "--message", "Add tasks")
    commit = git("rev-parse", "HEAD")
    assert {"commit": commit, "dirty": False} == said()
    with (small.path / "tasks/words.jsonl").open("a") as file:
        file.write("\n")
    assert {"commit": commit, "dirty": True} == said()
    link = small.path.parent / "link"
    link.symlink_to(small.path / "tasks", target_is_directory=True)
    assert {"commit": commit, "dirty": True} == said(f"--rootdir={link}", "tasks")
