"""An interval beside a verdict leaves out 0 where the verdict says regression or improvement, and only there."""

from __future__ import annotations

import random

import pytest

from pytest_lmeval.compare.changes import TaskChange
from pytest_lmeval.compare.compare import compare
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.explain import may_be
from pytest_lmeval.compare.rank import rank
from pytest_lmeval.types import ExampleResult
from tests.compare.conftest import few_and_all
from tests.compare.test_compare import answers, broken, run
from tests.compare.test_rank import run_of


def drawn_board(toss: random.Random) -> tuple[list[ExampleResult], list[ExampleResult]]:
    """Return two runs of one to ten tasks: small or large, graded, repeated or clustered, some of them worse."""
    old: list[ExampleResult] = []
    new: list[ExampleResult] = []
    kind = toss.choice(("flips", "flips", "thirds", "graded"))
    for task in range(toss.choice((1, 1, 2, 3, 5, 10))):
        drop, noise, is_clustered = toss.choice((0, 0, 0.1, 0.4)), toss.choice((0.05, 0.2)), toss.random() < 0.2
        for number in range(toss.randint(1, 39)):
            before = score_of(kind, toss)
            after = before if toss.random() > noise else score_of(kind, toss)
            after = max(0.0, after - 0.5) if toss.random() < drop else after
            cluster = f"c{number // 4}" if is_clustered else ""
            for results, score in ((old, before), (new, after)):
                results.append(example(f"t{task}", str(number), score, cluster))
    return old, new


def score_of(kind: str, toss: random.Random) -> float:
    if kind == "flips":
        return float(toss.random() < 0.7)
    return toss.randint(0, 3) / 3 if kind == "thirds" else toss.betavariate(4, 1)


def example(task: str, id: str, score: float, cluster: str = "") -> ExampleResult:
    return ExampleResult(
        task, id, "passed" if score >= 0.5 else "failed", score, 0.5, "exact_match", f"{task}-{id}", cluster=cluster
    )


def leaves_out_zero(ends: tuple[float, float] | None) -> bool:
    return ends is not None and (ends[1] < 0 or ends[0] > 0)


def contradicts(change: TaskChange) -> bool:
    return leaves_out_zero(change.interval) is not (change.verdict in ("regression", "improvement"))


@pytest.mark.parametrize("boards", few_and_all(60, 10_000))
def test_no_interval_contradicts_the_gate(boards: int) -> None:
    toss = random.Random(17)
    found = set()
    for _ in range(boards):
        comparison = compare(*drawn_board(toss), Criteria(alpha=toss.choice((0.01, 0.05, 0.2))))
        rows = (*comparison.tasks, comparison.pooled)
        assert [] == [row for row in rows if contradicts(row)]
        found |= {row.verdict for row in rows}
    assert {"pass", "regression", "improvement", "inconclusive"} == found


@pytest.mark.parametrize("rankings", few_and_all(30, 10_000))
def test_no_interval_contradicts_the_ranking(rankings: int) -> None:
    toss = random.Random(18)
    worse = 0
    for _ in range(rankings):
        skill = [toss.choice((0.5, 0.7, 0.9)) for _ in range(4)]
        runs = [
            run_of(f"m{number}", [float(toss.random() < each) for _ in range(40)]) for number, each in enumerate(skill)
        ]
        for standing in rank(runs).standings[1:]:
            assert leaves_out_zero(standing.difference_ci95) is standing.is_worse
            worse += standing.is_worse
    assert worse > rankings / 4


@pytest.mark.parametrize("how", ["strict", "exact"])
def test_a_row_that_single_examples_decide_says_so(how: str) -> None:
    old = run(answers(19, 1))
    comparison = compare(old, broken(old, 1), Criteria(strict=how == "strict", exact=how == "exact"))
    (row,) = comparison.tasks
    assert ("regression", False, how) == (row.verdict, leaves_out_zero(row.interval), row.decided_by)
    assert "; single examples decide (" in comparison.reasons[0]
    assert comparison.to_json()["tasks"][0]["decided_by"] == how


def test_bounds_are_worded_by_what_they_leave_out() -> None:
    assert "at least 10.4, at most 58.8" == may_be((-0.588, -0.104)) == may_be((0.104, 0.588))
    assert ["below 0, at most 30.0", "above 0, at most 30.0"] == [may_be((-0.3, -1e-4)), may_be((1e-4, 0.3))]
    assert "-35.6 to +25.8" == may_be((-0.356, 0.258))
