"""The comparison on real runs: four models' recorded solutions of 1,319 grade-school problems."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from pytest_lmeval.compare.compare import Comparison, compare
from pytest_lmeval.types import ExampleResult
from tests import needs
from tests.tables import each_row

SOLUTIONS = needs.DATA / "gsm8k" / "example_model_solutions.jsonl"
pytestmark = needs.needs_file(SOLUTIONS)


@cache
def solutions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SOLUTIONS.read_text("utf-8").split("\n") if line]


def run(model: str, count: int = 1319) -> list[ExampleResult]:
    return [
        ExampleResult(
            task="gsm8k",
            id=f"{number:04}",
            status="passed" if record[model]["is_correct"] else "below",
            score=float(record[model]["is_correct"]),
            threshold=1.0,
            metric="exact_match",
            hash=f"h{number}",
        )
        for number, record in enumerate(solutions()[:count])
    ]


def with_broken(results: Sequence[ExampleResult], share: float, seed: int) -> list[ExampleResult]:
    """Return the results with a random share of the right answers turned wrong."""
    right = [number for number, result in enumerate(results) if result.status == "passed"]
    chosen = set(random.Random(seed).sample(right, round(share * len(right))))
    return [
        replace(result, score=0.0, status="below") if number in chosen else result
        for number, result in enumerate(results)
    ]


def counts(comparison: Comparison) -> tuple[str, int, int, int]:
    return comparison.verdict, comparison.paired, len(comparison.worse), len(comparison.better)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.again) for seed in range(1, 5))])
@pytest.mark.parametrize("model", ["6b_finetuning", "175b_verification"])
def test_three_percent_of_the_right_answers_broken_are_caught_in_1319_examples(model: str, seed: int) -> None:
    old = run(model)
    assert "regression" == compare(old, with_broken(old, 0.03, seed)).verdict


@each_row("seed", range(5))
def test_they_are_not_in_100_examples_and_it_is_said_what_those_could_have_shown(seed: int) -> None:
    old = run("175b_verification", 100)
    comparison = compare(old, with_broken(old, 0.03, seed))
    assert ("pass", 100, 2, 0) == counts(comparison)
    assert comparison.pooled.detectable is not None
    assert 0.07 < comparison.pooled.detectable < 0.1
    points = 100 * comparison.pooled.detectable
    assert comparison.reasons[0].endswith(f"; smallest drop this run would detect with 80 % power: {points:.1f} points")


def test_what_100_examples_could_have_shown_they_show_about_four_times_in_five() -> None:
    old = run("175b_verification", 100)
    drop = compare(old, with_broken(old, 0.03, 0)).pooled.detectable
    assert drop is not None
    # The share of right answers to break, of 58 in 100, that makes such a drop; the noise that was seen is not added.
    toss = random.Random(1)
    found = 0
    for seed in range(60):
        share = sum(toss.random() < drop for _ in range(100)) / 58
        found += compare(old, with_broken(old, share, seed)).verdict == "regression"
    assert found >= 45
