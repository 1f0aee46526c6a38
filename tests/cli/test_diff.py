"""``lmeval diff``: the command line, from real runs to what is printed and the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Evaluate, Lmeval


def test_a_regression_exits_1_and_shows_what_flipped(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, err = lmeval("diff", base / "ledger.jsonl", worse / "leaderboard.json", "--limit", "3")
    assert (1, "") == (code, err)
    assert "passed before, and not now: 9 (3 shown)" in out
    assert "  targets:\n    's0'\n  old (1.0000):\n    s0\n  new (0.0000):\n    hm\n" in out
    assert "verdict: regression" in out
    assert "  all 20 examples of the baseline were compared\n" in out


def test_what_was_not_compared_is_said_in_every_format(lmeval: Lmeval, base: Path, tmp_path: Path) -> None:
    old, new = (base / "ledger.jsonl").read_text(), tmp_path / "ledger.jsonl"
    new.write_text("".join(line for line in old.splitlines(keepends=True) if '"id":"sums-3"' not in line))
    said = "not compared: 1 removed (1 passed before); compared: 19 of the baseline's 20 examples"
    for form in ("table", "markdown", "json"):
        code, out, _ = lmeval("diff", base / "ledger.jsonl", new, f"--format={form}")
        assert (0, True) == (code, said in out)


def test_a_run_against_itself_passes_and_says_that_it_is_the_same(lmeval: Lmeval, base: Path) -> None:
    code, out, _ = lmeval("diff", base / "ledger.jsonl", base / "ledger.jsonl")
    assert code == 0
    assert "note: both files are of the same run" in out


def test_an_improvement_exits_0(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, _ = lmeval("diff", worse / "ledger.jsonl", base / "ledger.jsonl", "--format=markdown")
    assert (0, True) == (code, out.startswith("# Comparison: improvement\n"))


def test_options_decide_what_a_regression_is(lmeval: Lmeval, base: Path, worse: Path) -> None:
    runs = (worse / "ledger.jsonl", base / "ledger.jsonl")
    # s1 is the one example that the better run has wrong and the other right.
    assert [0, 1] == [lmeval("diff", *runs, *options)[0] for options in ((), ("--strict",))]
    assert 0 == lmeval("diff", *runs[::-1], "--tolerance=0.9")[0]
    assert 0 == lmeval("diff", *runs[::-1], "--alpha=0.0001")[0]


def test_json_has_every_flip_whatever_the_limit(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, _ = lmeval("diff", base / "ledger.jsonl", worse / "ledger.jsonl", "--format=json", "--limit=0")
    value = json.loads(out)
    assert (1, "regression", 9) == (code, value["comparison"]["verdict"], len(value["comparison"]["worse"]))


def test_boards_without_examples_are_compared_by_their_scores(
    lmeval: Lmeval, base: Path, worse: Path, bare_board: Path
) -> None:
    code, out, _ = lmeval("diff", bare_board, worse / "ledger.jsonl")
    assert code == 0
    assert "no paired test was possible" in out
    assert "sums     0.9167  0.2500  -0.6667" in out


@pytest.mark.parametrize("option", ["--alpha=0", "--alpha=1", "--tolerance=1", "--limit=-1", "--format=xml"])
def test_values_out_of_range_are_usage_errors(lmeval: Lmeval, base: Path, option: str) -> None:
    code, out, err = lmeval("diff", base / "ledger.jsonl", base / "ledger.jsonl", option)
    assert (2, "") == (code, out)
    assert option.partition("=")[0] in err


def test_what_cannot_be_read_exits_2_and_names_it(lmeval: Lmeval, base: Path, tmp_path: Path) -> None:
    newer = tmp_path / "newer.json"
    newer.write_text('{"schema": "pytest-lmeval/leaderboard/3"}')
    for path, reason in ((tmp_path / "gone", "cannot be read"), (newer, "this one reads pytest-lmeval/leaderboard/2")):
        code, out, err = lmeval("diff", base / "ledger.jsonl", path)
        assert (2, "") == (code, out)
        assert err.startswith(f"lmeval diff: {path}: ")
        assert reason in err


def test_output_that_the_terminal_cannot_show_is_spelled_out(base: Path, worse: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text((worse / "ledger.jsonl").read_text().replace('["hm"]', '["h\\u00e4\\ud800\\u001b[31m"]'))
    run = subprocess.run(
        [sys.executable, "-m", "pytest_lmeval.cli", "diff", base / "ledger.jsonl", ledger],
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (1, b"") == (run.returncode, run.stderr)
    assert b"    h\\xe4\\ud800\\x1b[31m\n" in run.stdout


# Published models


def test_a_lower_model_is_a_regression_and_a_higher_one_an_improvement(lmeval: Lmeval, gsm8k: Path) -> None:
    better, lower = (gsm8k / name / "ledger.jsonl" for name in ("better", "lower"))
    code, out, _ = lmeval("diff", better, lower, "--limit=0")
    assert code == 1
    assert "gsm8k    regression      1319  0.5625  0.3472  -0.2153" in out
    assert "-21.5 points (at least 18.4, at most 24.0), 360 worse and 76 better of 1319" in out
    code, out, _ = lmeval("diff", lower, better, "--limit=0")
    assert (0, True) == (code, "verdict: improvement" in out)


def test_a_shard_that_got_worse_is_a_regression_and_a_shard_is_no_baseline(
    lmeval: Lmeval, stub_project: Path, base: Path, evaluate: Evaluate
) -> None:
    wrong = "s0 s2 s4 s6 s8 s10 w0 w2 w4 w6"
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks", "--lm-shard=1/2")
    shard = evaluate(stub_project, "worse-shard", *options, wrong=wrong)
    code, out, _ = lmeval("diff", base / "ledger.jsonl", shard / "ledger.jsonl", "--strict")
    assert (1, True) == (code, "verdict: regression" in out)
    code, _, err = lmeval("report", base / "ledger.jsonl", "--baseline", shard / "ledger.jsonl", "-o", shard / "x.html")
    assert (2, True) == (code, "one shard of a run; it cannot be a baseline" in err)


def test_a_floor_that_the_new_run_recorded_binds(
    lmeval: Lmeval, stub_project: Path, base: Path, evaluate: Evaluate
) -> None:
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks", "--lm-min-score=overall=0.99")
    low = evaluate(stub_project, "low", *options, wrong="s1 w1")
    code, out, _ = lmeval("diff", base / "ledger.jsonl", low / "ledger.jsonl")
    assert (1, True) == (code, "verdict: floor" in out)
