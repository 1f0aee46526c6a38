"""Alpha is the run's: of several models with a baseline each is tested at its part of it."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Project

# ``Knows`` knows the numbers from ``first`` on.
MODELS = """
class Knows:
    name = "knows.v1"

    def __init__(self, first=0, dies=""):
        self.options = {"first": int(first), "dies": dies}

    def generate(self, prompts):
        if self.options["dies"]:
            raise RuntimeError("it is down")
        said = [prompt.rpartition("say: ")[2] for prompt in prompts]
        return [each if int(each) >= self.options["first"] else "?" for each in said]
"""
FOUR = tuple(f"--lm-adapter={label}=models:Knows" for label in "ABCD")


@pytest.fixture
def known(project: Project) -> Project:
    project.write("models.py", MODELS)
    project.task("tasks/numbers.jsonl", *[project.record(f"e{n}", str(n)) for n in range(40)])
    assert 0 == project.run_pytest(*FOUR, "--lm-baseline=bases", "--lm-update-baseline").ret
    return project


def test_a_drop_that_would_fail_a_model_alone_is_inconclusive_among_four(known: Project) -> None:
    # Five worse and none better: p is 1 in 64.
    worse = ("--lm-adapter-arg=B:first=5", "--lm-baseline=bases")
    ran = known.run_pytest(*FOUR, *worse)
    ran.stdout.fnmatch_lines(
        [
            "*: inconclusive: 1.0000 -> 0.8750, -12.5 points (-*p 0.016; of this model alone it would be a regression "
            "(p 0.016); over 4 models p is 0.062, not significant*",
            "interval: confidence interval of the change;*(alpha 5 % of the run, shared by 4 models)",
        ]
    )
    gate = known.board("reports/B")["gate"]
    assert (0, "inconclusive", 0.05, 4) == (ran.ret, gate["verdict"], gate["alpha"], gate["models"])
    (row,) = gate["comparison"]["tasks"]
    assert (0.0625, 0.0125, True) == (row["p_adjusted"], row["level"], row["interval"][0] < 0 < row["interval"][1])
    assert "over 4 models" in (known.path / "reports/B/leaderboard.md").read_text()
    # Whoever looks again is told the same, from the one model's files alone.
    again = known.lmeval("diff", "bases/B.json", "reports/B/ledger.jsonl", "--format=json")
    assert (0, "inconclusive") == (again.ret, json.loads(again.stdout.str())["gate"]["verdict"])
    page = known.lmeval("report", "reports/B/ledger.jsonl", "--baseline=bases/B.json", "-o", "page.html")
    assert "over 4 models p is 0.062" in page.stdout.str()
    for part in (1, 2):
        known.run_pytest(*FOUR, *worse, f"--lm-shard={part}/2", f"--lm-report-dir=s{part}")
    merged = known.lmeval("merge", "s1/B/ledger.jsonl", "s2/B/ledger.jsonl", "-o", "merged")
    assert "over 4 models p is 0.062" in merged.stdout.str()
    alone = known.run_pytest("--lm-adapter=B=models:Knows", "--lm-adapter-arg=first=5", "--lm-baseline=bases/B.json")
    assert (1, "regression") == (alone.ret, known.board()["gate"]["verdict"])


@pytest.mark.again
def test_a_model_s_verdict_does_not_depend_on_the_others_answers(known: Project) -> None:
    worse = ("--lm-adapter-arg=B:first=8", "--lm-baseline=bases")
    verdicts = []
    for others in ((), ("--lm-adapter-arg=A:first=39",), ("--lm-adapter-arg=A:dies=yes", "--lm-retries=0")):
        known.run_pytest(*FOUR, *worse, *others)
        verdicts.append(known.board("reports/B")["gate"]["verdict"])
    assert ["regression"] * 3 == verdicts


@pytest.mark.again
def test_what_is_said_again_of_a_run_is_said_by_its_own_rules(known: Project) -> None:
    known.run_pytest(FOUR[1], "--lm-adapter-arg=first=1", "--lm-baseline=bases/B.json", "--lm-strict")
    for command in (
        ("report", "reports/ledger.jsonl", "--baseline=bases/B.json", "-o", "page.html"),
        ("diff", "bases/B.json", "reports/ledger.jsonl"),
    ):
        assert "strict: each such example counts" in known.lmeval(*command).stdout.str()


def test_a_model_without_a_baseline_beside_others_is_new_and_not_gated(known: Project) -> None:
    two = (FOUR[0], "--lm-adapter=Z=models:Knows", "--lm-adapter-arg=Z:first=39")
    ran = known.run_pytest(*two, "--lm-baseline=bases")
    assert 0 == ran.ret
    verdicts = {label: known.board(f"reports/{label}")["gate"]["verdict"] for label in "AZ"}
    assert {"A": "pass", "Z": "new"} == verdicts
    ran.stdout.fnmatch_lines(["  no baseline for Z in bases: no comparison, and no baseline gates this model"])
    assert "no baseline for Z in bases" in (known.path / "reports/Z/leaderboard.md").read_text()
    # Where no model has one, the folder is mistaken.
    assert 4 == known.run_pytest(two[1], "--lm-adapter=Y=models:Knows", "--lm-baseline=bases").ret
