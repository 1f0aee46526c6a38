"""Examples that pass in some runs of one model and not in others: how often, and what is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compare.calibrate import flipping
from pytest_lmeval.leaderboard.board import RunFacts
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.types import ExampleResult


def run(scores: Sequence[float | None], day: str = "2026-11-01") -> RunFile:
    results = tuple(
        ExampleResult(
            "t", f"e{n}", "error" if score is None else "passed" if score else "below", score, 1.0, "m", f"h{n}"
        )
        for n, score in enumerate(scores)
    )
    facts = RunFacts(f"{day}T10:00:00Z", "m")
    return RunFile(path=Path("r"), kind="ledger", facts=facts, complete=True, infos={}, results=results)


def test_an_example_that_flips_often_is_proposed_with_the_quarantine_to_write() -> None:
    runs = [run([1.0, first, 1.0]) for first in (1.0, 0.0, 1.0, 0.0)] + [run([0.0, 1.0, 1.0], "2026-11-15")]
    assert ["e1", "e0"] == [each.id for each in flipping(runs)]
    (found,) = flipping(runs, 0.5)
    assert (5, 3, 0.6) == (found.runs, found.passed, found.rate)
    assert {"until": "2026-12-15", "reason": "passed in 3 of 5 runs of one model"} == found.quarantine
    assert '"quarantine": {"until": "2026-12-15"' in found.line


def test_examples_that_are_not_the_same_in_all_runs_are_none() -> None:
    first, second = run([1.0, 1.0, 1.0]), run([0.0, None, 0.0])
    changed = replace(second, results=tuple(replace(each, hash="other") for each in second.results or ()))
    assert ["e0", "e2"] == [each.id for each in flipping([first, second])]
    assert () == flipping([first, changed])


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_the_rate_is_the_share_of_pairs_of_runs_that_differ(passes: list[bool]) -> None:
    pairs = list(combinations(passes, 2))
    expected = sum(one != other for one, other in pairs) / len(pairs)
    (found,) = flipping([run([float(each)]) for each in passes], 0.0)
    assert abs(expected - found.rate) < 1e-12
