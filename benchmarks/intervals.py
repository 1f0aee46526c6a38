"""Simulates several unchanged models beside each other, and how often shown intervals hold what is true.

Usage: ``python benchmarks/intervals.py [--runs N] [--seed S]``; some minutes with the default of 2,000 runs a line.
Prints the tables that ``docs/gate.md`` shows.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence

from pytest_lmeval.compare.changes import overall_change, task_changes
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.pairing import Pair
from pytest_lmeval.stats.intervals import score_bounds
from pytest_lmeval.types import ExampleResult

__all__ = ["CHANGES", "SCORES", "change_coverage", "false_alarms", "score_coverage"]

Draw = Callable[[random.Random], float]
_SIZES = (5, 10, 30, 200)
_SHAPES = ((1, 200), (5, 40))
_MODELS = (1, 4, 8)

# By name: how a score is drawn, and its mean.
SCORES: dict[str, tuple[Draw, float]] = {
    "right in 7 of 10": (lambda toss: float(toss.random() < 0.7), 0.7),
    "right in 95 of 100": (lambda toss: float(toss.random() < 0.95), 0.95),
    "graded, skewed (beta 8, 0.5)": (lambda toss: toss.betavariate(8, 0.5), 8 / 8.5),
    "graded, even (beta 2, 2)": (lambda toss: toss.betavariate(2, 2), 0.5),
    "all 0.5, one in twenty 0": (lambda toss: 0.5 * (toss.random() >= 0.05), 0.475),
}
# By name: how the change of an example is drawn, and its mean.
CHANGES: dict[str, tuple[Draw, float]] = {
    "10 % flip, no change": (lambda toss: _flip(toss, 0.1, 0.0), 0.0),
    "10 % flip, a drop of 10 points": (lambda toss: _flip(toss, 0.1, 0.1), -0.1),
    "graded, no change": (lambda toss: toss.uniform(-0.2, 0.2), 0.0),
    "graded, one in twenty collapses": (lambda toss: -0.9 if toss.random() < 0.05 else 0.0, -0.045),
}


def _flip(toss: random.Random, noise: float, drop: float) -> float:
    drawn = toss.random()
    return -1.0 if drawn < noise / 2 + drop else float(drawn > 1 - noise / 2)


def false_alarms(models: int, tasks: int, examples: int, runs: int, seed: int = 0) -> float:
    """Return the share of runs of so many unchanged models, each with a baseline, in which any is a regression."""
    toss, criteria = random.Random(seed), Criteria(models=models)
    return sum(any(_is_red(toss, tasks, examples, criteria) for _ in range(models)) for _ in range(runs)) / runs


def _is_red(toss: random.Random, tasks: int, examples: int, criteria: Criteria) -> bool:
    pairs = [_pair(f"t{task}", _flip(toss, 0.1, 0.0), number) for task in range(tasks) for number in range(examples)]
    changes = (overall_change(pairs, criteria), *task_changes((), pairs, criteria))
    return any(change.verdict == "regression" for change in changes)


def _pair(task: str, change: float, number: int = 0) -> Pair:
    before = max(0.0, -change)
    return Pair(_result(task, before, number), _result(task, min(1.0, before + change), number))


def _result(task: str, score: float, number: int) -> ExampleResult:
    return ExampleResult(task, str(number), "passed" if score >= 0.5 else "below", score, 0.5, "exact_match", "h")


def score_coverage(draw: Draw, mean: float, n: int, runs: int, seed: int = 0) -> float:
    """Return how often the interval of the score of n examples holds the mean."""
    toss, held = random.Random(seed), 0
    for _ in range(runs):
        low, high = score_bounds([draw(toss) for _ in range(n)]) or (1.0, 0.0)
        held += low <= mean <= high
    return held / runs


def change_coverage(draw: Draw, mean: float, n: int, runs: int, seed: int = 0) -> float:
    """Return how often the interval of the change of n examples holds the mean, each end at 2.5 %."""
    toss, held, criteria = random.Random(seed), 0, Criteria(alpha=0.025)
    for _ in range(runs):
        low, high = overall_change([_pair("t", draw(toss), number) for number in range(n)], criteria).interval or (1, 0)
        held += low <= mean <= high
    return held / runs


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for line in (headings, ["---", *["---:"] * (len(headings) - 1)], *rows):
        print(f"| {' | '.join(line)} |", flush=True)
    print()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    runs, seed = options.runs, options.seed
    alarms = [
        [str(models), *(f"{100 * false_alarms(models, *shape, runs, seed):.1f}" for shape in _SHAPES)]
        for models in _MODELS
    ]
    _table(["unchanged models", *(f"{tasks} x {examples}" for tasks, examples in _SHAPES)], alarms)
    for cases, coverage in ((SCORES, score_coverage), (CHANGES, change_coverage)):
        rows = [
            [name, *(f"{100 * coverage(draw, mean, n, runs, seed):.1f}" for n in _SIZES)]
            for name, (draw, mean) in cases.items()
        ]
        _table(["95 % interval of", *(f"n = {n}" for n in _SIZES)], rows)


if __name__ == "__main__":
    main()
