"""``lmeval history``: boards of several days to how scores moved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Evaluate, Lmeval

RUNS = (
    # day, model, overall score, sha256 of the tasks
    ("01", "mini", 0.7, "a"),
    ("05", "large", 0.9, "a"),
    ("10", "mini", 0.8, "b"),
)


@pytest.fixture
def boards(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a folder with the boards of three runs, each in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    original = json.loads((base / "leaderboard.json").read_text())
    for day, model, score, sha256 in RUNS:
        board: dict[str, Any] = json.loads(json.dumps(original))
        board |= {"timestamp": f"2026-11-{day}T10:00:00Z", "adapter": model, "overall_score": score, "digest": day}
        board["overall_ci95"] = [score - 0.1, score + 0.1]
        board["tasks"][0] |= {"sha256": sha256, "score": score / 2, "ci95": [score / 4, score]}
        folder = tmp_path / "runs" / day
        folder.mkdir(parents=True)
        (folder / "leaderboard.json").write_text(json.dumps(board))
    return tmp_path / "runs"


def test_the_scores_of_each_task_are_listed_in_order_of_time_and_a_changed_suite_is_marked(
    lmeval: Lmeval, boards: Path
) -> None:
    code, out, err = lmeval("history", *sorted(boards.glob("*/leaderboard.json"), reverse=True))
    parts = [part.splitlines() for part in out.split("\n\n")]

    assert (0, "") == (code, err)
    assert ["overall", "sums", "words"] == [part[0] for part in parts if part]
    assert [
        ["2026-11-01T10:00:00Z", "mini", "0.7000", "0.600", "to", "0.800", "20"],
        ["2026-11-05T10:00:00Z", "large", "0.9000", "0.800", "to", "1.000", "20"],
        ["2026-11-10T10:00:00Z", "mini", "0.8000", "0.700", "to", "0.900", "20", "the", "suite", "changed"],
    ] == [line.split() for line in parts[0][2:]]
    assert ["0.3500", "0.4500", "0.4000"] == [line.split()[2] for line in parts[1][2:]]
    assert "changed" not in "".join(parts[2])


def test_a_folder_stands_for_every_board_below_it_and_one_task_can_be_asked_for(lmeval: Lmeval, boards: Path) -> None:
    code, out, _ = lmeval("history", boards, "--task=sums", "--format=json")
    value = json.loads(out)

    assert 0 == code
    assert ["sums"] == [*value["series"]]
    assert [False, False, True] == [point["changed"] for point in value["series"]["sums"]]
    assert [] == value["notes"]


def test_a_run_that_comes_twice_counts_once_and_a_torn_board_is_named(lmeval: Lmeval, boards: Path) -> None:
    torn, copy = boards / "torn/leaderboard.json", boards / "z/leaderboard.json"
    for path in (torn, copy):
        path.parent.mkdir()
        path.write_text((boards / "01/leaderboard.json").read_text())
    torn.write_text(torn.read_text()[:100])
    code, out, _ = lmeval("history", boards, "--format=markdown", "--task=overall")

    assert 1 == code
    assert 3 == out.count("| 2026-11-")
    assert f"skipped: {torn}".replace("_", "\\_") in out
    assert ": the same run as " in out


def test_a_folder_without_a_board_is_refused_beside_one_with_a_torn_board(
    lmeval: Lmeval, boards: Path, tmp_path: Path
) -> None:
    (boards / "torn").mkdir()
    (boards / "torn/leaderboard.json").write_text("{")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty}: no leaderboard.json in this folder" in lmeval("history", boards, empty)[2]


def test_a_run_that_lacks_examples_says_so_and_a_ledger_is_read_as_a_board(
    lmeval: Lmeval, stub_project: Path, evaluate: Evaluate
) -> None:
    folder = evaluate(stub_project, "part", "--lm-adapter=model:Model", "--lm-limit=2", "--lm-gate=none")
    code, out, _ = lmeval("history", folder / "ledger.jsonl", "--task=overall")

    assert 0 == code
    assert ["4", "a", "part", "of", "the", "examples"] == out.splitlines()[2].split()[-6:]


@pytest.fixture
def two_days(base: Path, worse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a folder with two runs of a model, one a day; the second is worse in the task ``sums``."""
    monkeypatch.chdir(tmp_path)
    for day, folder in (("01", base), ("02", worse)):
        copy = shutil.copytree(folder, tmp_path / "runs" / day)
        stamp = json.loads((folder / "leaderboard.json").read_text())["timestamp"]
        for path in (copy / "leaderboard.json", copy / "ledger.jsonl"):
            path.write_text(path.read_text().replace(stamp, f"2026-11-{day}T10:00:00Z"))
    return tmp_path / "runs"


def test_a_drop_is_marked_if_the_gates_test_finds_it(lmeval: Lmeval, two_days: Path) -> None:
    _, out, _ = lmeval("history", two_days, "--format=json", "--html=history.html")
    series = json.loads(out)["series"]
    _, out, _ = lmeval("diff", two_days / "01/ledger.jsonl", two_days / "02/ledger.jsonl", "--format=json")
    found = json.loads(out)["comparison"]
    changes = {each["task"]: each for each in (*found["tasks"], found["pooled"]) if each["verdict"] == "regression"}
    drops = {task: points[1]["drop"] for task, points in series.items() if points[1]["drop"]}

    assert {"overall", "sums"} == {*changes} == {*drops}
    assert {task: (each["change"], each["p_adjusted"]) for task, each in changes.items()} == {
        task: (each["change"], each["p"]) for task, each in drops.items()
    }
    page = Path("history.html").read_text()
    assert 2 == page.count("path class=drop")
    assert "one comparison of two runs in twenty gets a mark by chance" in page
    assert '<a href="runs/02/report.html">2 Nov 2026, 10:00 UTC</a>: stub.v1 fell by' in page
    _, out, _ = lmeval("history", two_days, "--task=sums")
    assert "points since the run before (p " in out.splitlines()[3]


def test_a_suite_that_changed_is_marked_once_for_all_models(lmeval: Lmeval, boards: Path) -> None:
    for day, model, sha256 in (("11", "large", "b"), ("12", "mini", "b"), ("13", "large", "a"), ("14", "large", "b")):
        board = json.loads((boards / "10/leaderboard.json").read_text())
        board |= {"timestamp": f"2026-11-{day}T10:00:00Z", "adapter": model, "digest": day}
        board["tasks"][0]["sha256"] = sha256
        (boards / day).mkdir()
        (boards / day / "leaderboard.json").write_text(json.dumps(board))
    _, out, _ = lmeval("history", boards, "--task=sums", "--format=json")
    marked = [point["timestamp"][8:10] for point in json.loads(out)["series"]["sums"] if point["changed"]]
    # Day 13 goes back to the old suite, and day 14 to the new one.
    assert ["10", "13", "14"] == marked


def test_a_run_that_died_says_how_many_examples_it_scored(lmeval: Lmeval, boards: Path) -> None:
    path = boards / "10/leaderboard.json"
    board = json.loads(path.read_text())
    board |= {"complete": False, "counts": board["counts"] | {"collected": 20, "scored": 8}}
    path.write_text(json.dumps(board))
    _, out, _ = lmeval("history", boards, "--task=sums")
    assert out.splitlines()[4].endswith("the suite changed, not complete, 8 of 20 scored")


def test_what_has_no_history_is_refused(lmeval: Lmeval, boards: Path) -> None:
    (boards / "empty").mkdir()
    for arguments, message in (
        ([boards / "empty"], "no leaderboard.json in this folder"),
        ([boards / "none.json"], "none.json"),
        ([boards, "--task=sum"], "unknown task 'sum'; did you mean 'sums'? (choices: overall, sums, words)"),
        ([boards, f"--html={boards}/01/leaderboard.json/x.html"], "cannot be written"),
    ):
        code, _, err = lmeval("history", *arguments)
        assert 2 == code
        assert message in err
