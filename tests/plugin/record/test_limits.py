"""``--lm-max``: a run that took longer, or cost more, than it may."""

from __future__ import annotations

import pytest

from tests.conftest import Project

# The time that it says it took stands in the prompt.
MODEL = """
from pytest_lmeval import Completion

class Model:
    name = "slow.v1"

    def generate_requests(self, requests):
        said = [one.text.split()[1] for one in requests]
        return [Completion(each, float(each), prompt_tokens=4, cost=0.25) for each in said]
"""


@pytest.fixture
def timed(project: Project) -> Project:
    project.usual = ("--lm-adapter=slow:Model",)
    project.write("slow.py", MODEL)
    records = [{"id": f"e{n}", "prompt": f"say: {n}", "targets": [f"{n}"], "metric": "exact_match"} for n in range(40)]
    project.task("tasks/slow.jsonl", *records)
    return project


def test_a_run_over_its_limits_fails_and_names_them(timed: Project) -> None:
    options = ("--lm-max=slow.p95_ms=30", "--lm-max=overall.cost=10", "--lm-max=slow.tokens_per_example=3")
    ran = timed.run(*options)
    assert 1 == ran.ret
    reasons = ["slow.p95_ms: 37 is over its limit 30", "slow.tokens_per_example: 4 is over its limit 3"]
    gate = timed.board()["gate"]
    assert ("limit", reasons) == (gate["verdict"], gate["reasons"])
    ran.stdout.fnmatch_lines(["gate examples: LIMIT", *(f"  {reason}" for reason in reasons)])
    assert "failed: over a limit" in (timed.path / "reports/leaderboard.md").read_text()
    spent = timed.board()["tasks"][0]["spent"]
    assert (40, 19.0, 37.0, 10.0) == tuple(spent[name] for name in ("requests", "p50_ms", "p95_ms", "cost"))


def test_merged_shards_and_a_diff_are_held_to_the_limits_of_the_run(timed: Project) -> None:
    for part in (1, 2):
        assert 0 == timed.run("--lm-max=slow.p95_ms=30", f"--lm-shard={part}/2", f"--lm-report-dir=s{part}").ret
    merged = timed.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "whole")
    assert 1 == merged.ret
    merged.stdout.fnmatch_lines(["gate examples: limit", "  slow.p95_ms: 37 is over its limit 30"])
    looser = timed.lmeval("merge", "s1/ledger.jsonl", "s2/ledger.jsonl", "-o", "whole", "--max=slow.p95_ms=99")
    assert 0 == looser.ret
    timed.run("--lm-max=slow.cost=1", "--lm-report-dir=new", "--lm-include-per-example")
    for file in ("new/ledger.jsonl", "new/leaderboard.json"):
        found = timed.lmeval("diff", "whole/ledger.jsonl", file)
        assert 1 == found.ret
        found.stdout.fnmatch_lines(["verdict: limit", "  slow.cost: 10 is over its limit 1"])


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("slow.p90_ms=3", "*unknown field of the limit 'slow.p90_ms'*p95_ms*"),
        ("slwo.p95_ms=3", "*unknown task in --lm-max=slwo.p95_ms*did you mean 'slow'?*"),
        ("p95_ms=3", "*limit 'p95_ms': expected NAME.FIELD*"),
        ("slow.p95_ms=-3", "*expected NAME=VALUE with a number >= 0 as VALUE*"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_a_usage_error(timed: Project, limit: str, message: str) -> None:
    ran = timed.run(f"--lm-max={limit}")
    assert 4 == ran.ret
    ran.stderr.fnmatch_lines([message])
