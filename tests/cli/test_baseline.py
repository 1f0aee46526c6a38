"""``lmeval baseline``: what a baseline is of, and which runs may become one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_lmeval.compare.baseline import check_baseline
from pytest_lmeval.records.runfile import read_run
from tests.cli.conftest import Evaluate, Lmeval


@pytest.fixture
def accepted(lmeval: Lmeval, base: Path, tmp_path: Path) -> Path:
    """Provide the base run as a baseline of its own."""
    path = tmp_path / "evals" / "base.json"
    assert (0, "") == lmeval("baseline", "accept", base / "ledger.jsonl", "-o", path)[::2]
    return path


def test_show_says_which_model_ran_when_and_what_it_reached(lmeval: Lmeval, accepted: Path, base: Path) -> None:
    code, out, _ = lmeval("baseline", "show", accepted)
    run = read_run(base / "ledger.jsonl")
    assert 0 == code
    assert "model     stub.v1\n" in out
    assert f"date      {run.timestamp}\n" in out
    assert "versions  python 3." in out
    assert f"digest    {run.digest}\n" in out
    assert "\nsums     exact_match  0.9167" in out
    code, out, _ = lmeval("baseline", "show", accepted, "--format=json")
    shown = json.loads(out)
    assert (0, "stub.v1", run.digest) == (code, shown["adapter"], shown["digest"])
    assert pytest.approx({"sums": 11 / 12, "words": 7 / 8}) == shown["scores"]


def test_a_baseline_that_was_changed_by_hand_is_called_that(lmeval: Lmeval, accepted: Path) -> None:
    accepted.write_text(accepted.read_text().replace('"score": 0.0', '"score": 1.0'))
    assert "(changed by hand: the file states another)" in lmeval("baseline", "show", accepted)[1]


def test_an_accepted_run_is_what_a_run_would_have_written_and_passes_against_itself(
    lmeval: Lmeval, accepted: Path, base: Path, stub_project: Path, evaluate: Evaluate, tmp_path: Path
) -> None:
    options = ("--lm-adapter=model:Model", f"--lm-baseline={tmp_path / 'own.json'}", "--lm-update-baseline")
    evaluate(stub_project, "updating", *options, wrong="s1 w1")
    own, ours = (json.loads(path.read_text()) for path in (tmp_path / "own.json", accepted))
    assert own["tasks"] == ours["tasks"]
    assert own["digest"] == ours["digest"]
    assert 0 == lmeval("diff", accepted, base / "ledger.jsonl", "--strict")[0]


def test_accepting_another_run_prints_what_flips(lmeval: Lmeval, accepted: Path, worse: Path) -> None:
    code, out, _ = lmeval("baseline", "accept", worse / "ledger.jsonl", "-o", accepted, "--limit=3")
    assert 0 == code
    assert "passed before, and not now" in out
    assert f"baseline written to {accepted}: stub.v1, " in out
    assert read_run(worse / "ledger.jsonl").digest == read_run(accepted).digest
    assert f"{accepted}: nothing changed\n" == lmeval("baseline", "accept", worse / "ledger.jsonl", "-o", accepted)[1]


def test_what_cannot_be_a_baseline_is_refused_and_nothing_is_written(
    lmeval: Lmeval, base: Path, shards: list[Path], stub_project: Path, evaluate: Evaluate, tmp_path: Path
) -> None:
    part = evaluate(stub_project, "part", "--lm-adapter=model:Model", "--lm-limit=3")
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join((base / "ledger.jsonl").read_text().splitlines(keepends=True)[:-2]))
    target = tmp_path / "new.json"
    for path, reason in (
        (shards[0], "one shard of a run"),
        (part / "ledger.jsonl", "this run covers a selection of the examples"),
        (cut, "did not finish"),
        (tmp_path / "none.jsonl", "cannot be read"),
    ):
        code, out, err = lmeval("baseline", "accept", path, "-o", target)
        assert (2, "") == (code, out)
        assert reason in err
    assert not target.exists()
    code, _, err = lmeval("baseline", "accept", base / "ledger.jsonl", "-o", base / "ledger.jsonl")
    assert (2, True) == (code, "this file is the run itself" in err)


def test_a_board_is_a_baseline_with_the_ledger_beside_it_if_that_is_of_the_same_run(
    base: Path, worse: Path, tmp_path: Path, lmeval: Lmeval
) -> None:
    board = shutil.copy(base / "leaderboard.json", tmp_path)
    assert 2 == lmeval("baseline", "show", board)[0]
    shutil.copy(worse / "ledger.jsonl", tmp_path)
    assert "without per-example records" in lmeval("baseline", "show", board)[2]
    shutil.copy(base / "ledger.jsonl", tmp_path)
    found = read_run(board)
    check_baseline(found)
    assert (Path(board), 20) == (found.path, len(found.results or ()))


def test_a_run_that_finished_with_errors_says_so(
    lmeval: Lmeval, base: Path, stub_project: Path, evaluate: Evaluate, tmp_path: Path
) -> None:
    # Five that failed with the same error would have ended the run.
    (stub_project / "broken.py").write_text(
        "class Model:\n    name = 'broken.v1'\n"
        "    def generate(self, prompts):\n        raise OSError('no disk', prompts)\n"
    )
    failed = evaluate(stub_project, "failed", "--lm-adapter=broken:Model") / "ledger.jsonl"
    code, _, err = lmeval("baseline", "accept", failed, "-o", tmp_path / "new.json")
    assert 2 == code
    for part in ("the run finished, and ", "could not be scored (", "no disk", "--lm-resume asks what failed again"):
        assert part in err
    _, out, _ = lmeval("diff", failed, base / "ledger.jsonl")
    assert "example(s) of the baseline could not be scored" in out
    assert "did not finish" not in out
