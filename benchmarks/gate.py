"""Simulates the regression gate: how often it fails a model that did not change, and how often it finds a drop.

Usage: ``python benchmarks/gate.py [--runs N] [--seed S]``; some minutes with the default of 2,000 runs a line. Prints
the false alarms, the power beside McNemar's mid-p test, and the table of power that ``docs/gate.md`` shows.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_lmeval.compare.compare import compare
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.stats.paired import holm
from pytest_lmeval.stats.power import flip_power
from pytest_lmeval.types import ExampleResult

__all__ = ["NULL", "POWER", "RULES", "Scenario", "power_table", "render", "simulate"]

_ALPHA = 0.05
_SIZES = (20, 50, 100, 200, 500, 1000, 2000, 5000)
_DROPS = (0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.30)

Flips = Sequence[Sequence[int]]
"""By task and example: -1 where it got worse, 1 where it got better, 0 where neither."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens between two runs: ``noise`` is the share of examples that flip by chance, half of them each way.

    ``drops`` are the shares that break besides, of the first tasks; the last holds for all that follow. The flips of
    ``cluster`` examples in a row are one.
    """

    name: str
    tasks: int
    examples: int
    noise: float
    drops: tuple[float, ...] = (0.0,)
    cluster: int = 1

    def draw(self, toss: random.Random) -> Flips:
        """Return the flips of one pair of runs."""
        return [self._task(self.drops[min(number, len(self.drops) - 1)], toss) for number in range(self.tasks)]

    def _task(self, drop: float, toss: random.Random) -> list[int]:
        chances = (self.noise / 2 + drop, self.noise / 2, 1 - self.noise - drop)
        drawn = toss.choices((-1, 1, 0), chances, k=math.ceil(self.examples / self.cluster))
        return [flip for flip in drawn for _ in range(self.cluster)][: self.examples]


NULL = (
    Scenario("10 tasks x 50, 10 % flip", 10, 50, 0.1),
    Scenario("10 tasks x 50, 18 % flip (each run errs 1 in 10)", 10, 50, 0.18),
    Scenario("10 tasks x 50, 2 % flip", 10, 50, 0.02),
    Scenario("1 task x 500, 10 % flip", 1, 500, 0.1),
    Scenario("50 tasks x 20, 10 % flip", 50, 20, 0.1),
    Scenario("10 tasks x 50, 10 % flip, five at a time, clusters named", 10, 50, 0.1, cluster=5),
)
POWER = (
    Scenario("every task drops by 4 points", 10, 50, 0.1, (0.04,)),
    Scenario("every task drops by 2 points", 10, 50, 0.1, (0.02,)),
    Scenario("one task of 10 drops by 30 points", 10, 50, 0.1, (0.3, 0.0)),
    Scenario("one task of 10 drops by 20 points", 10, 50, 0.1, (0.2, 0.0)),
    Scenario("a single task x 200 drops by 8 points", 1, 200, 0.1, (0.08,)),
)


Rule = Callable[[Flips, Scenario], bool]


def _gate(flips: Flips, scenario: Scenario) -> bool:
    outcomes = {-1: (1.0, 0.0), 1: (0.0, 1.0), 0: (1.0, 1.0)}
    old, new = (
        [
            _result(task, number, outcomes[flip][side], scenario.cluster)
            for task, each in enumerate(flips)
            for number, flip in enumerate(each)
        ]
        for side in (0, 1)
    )
    return compare(old, new, Criteria(alpha=_ALPHA)).verdict == "regression"


def _result(task: int, number: int, score: float, cluster: int) -> ExampleResult:
    return ExampleResult(
        task=f"t{task}",
        id=str(number),
        status="passed" if score else "below",
        score=score,
        threshold=1.0,
        metric="exact_match",
        hash="",
        cluster=f"t{task}-{number // cluster}" if cluster > 1 else "",
    )


def mcnemar_mid_p(flips: Sequence[int]) -> float:
    """Return McNemar's one-sided mid-p, straight from its definition."""
    worse, better = flips.count(-1), flips.count(1)
    ways = [math.comb(worse + better, k) for k in range(better + 1)]
    return float((sum(ways) - ways[-1] / 2) / 2 ** (worse + better))


def _mcnemar_of_all(alpha: float) -> Rule:
    return lambda flips, scenario: mcnemar_mid_p([flip for task in flips for flip in task]) <= alpha


def _mcnemar_by_task(alpha: float) -> Rule:
    def rule(flips: Flips, scenario: Scenario) -> bool:
        by_task = {str(number): mcnemar_mid_p(task) for number, task in enumerate(flips)}
        return min(holm(by_task).values()) <= alpha

    return rule


def _any_drop(flips: Flips, scenario: Scenario) -> bool:
    return any(sum(task) < 0 for task in flips)


RULES: Mapping[str, Rule] = {
    "the gate": _gate,
    "McNemar, all pairs, at 2.5 %": _mcnemar_of_all(_ALPHA / 2),
    "McNemar, tasks, Holm, at 2.5 %": _mcnemar_by_task(_ALPHA / 2),
    "McNemar, all pairs, at 5 %": _mcnemar_of_all(_ALPHA),
    "McNemar, tasks, Holm, at 5 %": _mcnemar_by_task(_ALPHA),
    "any task's score fell": _any_drop,
}


def simulate(scenario: Scenario, runs: int, seed: int) -> dict[str, float]:
    """Return the share of ``runs`` pairs of runs that each rule calls a regression."""
    toss = random.Random(f"{seed} {scenario.name}")
    drawn = [scenario.draw(toss) for _ in range(runs)]
    return {name: sum(rule(flips, scenario) for flips in drawn) / runs for name, rule in RULES.items()}


def power_table(noise: float) -> list[str]:
    """Return the lines of a Markdown table: the chance that a drop of the overall score is found."""
    lines = [
        "| N | " + " | ".join(f"{100 * drop:.0f}" for drop in _DROPS) + " |",
        "| ---: |" + " ---: |" * len(_DROPS),
    ]
    for n in _SIZES:
        cells = [f"{100 * flip_power(n, drop, noise, _ALPHA / 2):.0f}" for drop in _DROPS]
        lines.append(f"| {n:,} | " + " | ".join(cells) + " |")
    return lines


def render(scenarios: Sequence[Scenario], runs: int, seed: int) -> list[str]:
    """Return the lines of a Markdown table with the share of regressions by scenario and rule, in percent."""
    lines = ["| " + " | ".join(["in % of the runs", *RULES]) + " |", "| --- |" + " ---: |" * len(RULES)]
    for scenario in scenarios:
        found = simulate(scenario, runs, seed)
        lines.append(f"| {scenario.name} | " + " | ".join(f"{100 * share:.1f}" for share in found.values()) + " |")
    return lines


def main() -> None:
    """Print false alarms, power and the table of power by size and drop."""
    parser = argparse.ArgumentParser(description="Simulate the regression gate.")
    parser.add_argument("--runs", type=int, default=2000, metavar="N", help="pairs of runs for each line")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    options = parser.parse_args()
    error = 100 * math.sqrt(_ALPHA * (1 - _ALPHA) / options.runs)
    print(f"{options.runs} pairs of runs a line; the standard error at 5 % is {error:.1f} points\n")
    print("\n".join(["False alarms: nothing changed", "", *render(NULL, options.runs, options.seed), ""]))
    print("\n".join(["Power: something did", "", *render(POWER, options.runs, options.seed), ""]))
    for noise in (0.1, 0.02):
        title = f"Power in % by pairs in all and points of overall drop, {100 * noise:.0f} % flip by chance"
        print("\n".join([title, "", *power_table(noise), ""]))


if __name__ == "__main__":
    main()
