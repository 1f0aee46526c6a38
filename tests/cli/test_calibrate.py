"""``lmeval calibrate``: two real runs of one model to what the gate makes of chance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Evaluate, Lmeval


def test_the_text_tells_flips_false_alarms_and_what_is_needed(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, err = lmeval("calibrate", base / "ledger.jsonl", worse / "leaderboard.json", "--rounds=50")
    lines = [line.split() for line in out.splitlines()]
    assert (0, "") == (code, err)
    assert ["sums", "12", "0.9167", "0.2500", "10", "83.3", "%"] == lines[1][:7]
    assert ["words", "8", "0.8750", "0.8750", "0", "0.0", "%"] == lines[2][:7]
    assert "of 50 simulated runs of this model a regression:" in out
    assert "a false-alarm rate of " in out
    assert ["5 points", "2 points", "1 point "] == [line[:8] for line in out.splitlines()[-3:]]


def test_json_has_the_numbers(lmeval: Lmeval, gsm8k: Path) -> None:
    runs = (gsm8k / "better/ledger.jsonl", gsm8k / "broken/ledger.jsonl")
    code, out, _ = lmeval("calibrate", *runs, "--rounds=5", "--format=json", "--seed=3")
    value = json.loads(out)
    assert (0, 1319, 22) == (code, value["overall"]["examples"], value["overall"]["flips"])
    assert {"tasks", "overall", "false_alarms", "needed", "repeats", "criteria", "notes", "flipping"} == value.keys()
    assert 5 == value["false_alarms"]["rounds"]
    assert [0.05, 0.02, 0.01] == [need["drop"] for need in value["needed"]]
    assert "hold only if it is one model" in value["notes"][0]


def test_one_run_twice_is_refused(lmeval: Lmeval, base: Path, worse: Path) -> None:
    code, out, err = lmeval("calibrate", worse / "ledger.jsonl", worse / "leaderboard.json")
    assert (2, "") == (code, out)
    assert "are files of the same run" in err
    assert 2 == lmeval("calibrate", base / "ledger.jsonl", worse / "ledger.jsonl", "--rounds=0")[0]


def test_of_several_runs_the_examples_that_flip_are_proposed_for_quarantine(
    lmeval: Lmeval, stub_project: Path, evaluate: Evaluate
) -> None:
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks")
    wrong = ("s1", "", "s1", "")
    ledgers = [evaluate(stub_project, f"c{n}", *options, wrong=each) / "ledger.jsonl" for n, each in enumerate(wrong)]
    code, out, _ = lmeval("calibrate", *ledgers, "--rounds=5")
    assert 0 == code
    assert "1 example(s) flip by chance:" in out
    assert 'sums: sums-1: passed in 2 of 4 runs, flip rate 0.67; to set it aside: {"quarantine": {"until": ' in out


@pytest.mark.again
def test_of_several_runs_no_two_may_share_answers(lmeval: Lmeval, stub_project: Path, evaluate: Evaluate) -> None:
    options = ("--lm-adapter=model:Model", "--lm-gate=tasks")
    wrong = " ".join([*(f"s{n}" for n in range(12)), *(f"w{n}" for n in range(8))])
    uncached = [evaluate(stub_project, f"u{n}", *options, wrong=wrong) / "ledger.jsonl" for n in range(2)]
    sharing = [evaluate(stub_project, f"s{n}", *options, "--lm-cache=kept") / "ledger.jsonl" for n in range(2)]
    # The first of them filled the cache, and the second has its answers.
    ledgers = [uncached[0], sharing[0], uncached[1], sharing[1]]
    assert 0 == lmeval("calibrate", *ledgers[:3], "--rounds=5")[0]
    code, out, err = lmeval("calibrate", *ledgers, "--rounds=5")
    assert (2, "") == (code, out)
    assert f"{sharing[0]} and {sharing[1]}: 20 example(s) have the same answers from a cache" in err
