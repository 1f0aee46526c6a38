"""Simulates ``lmeval plan``: how often the gate finds a drop of the size that it should find in 80 of 100 runs.

Usage: ``python benchmarks/plan.py [--rounds N] [--seed S]``; some minutes with the default of 1,000 rounds a line.
Prints the table of ``docs/reference/gate-test.md``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_lmeval.compare.noise import Noise, measured_noise
from pytest_lmeval.compare.plan import ASSUMED_NOISE, Planned, plan
from pytest_lmeval.stats.paired import pooled_test
from pytest_lmeval.types import ExampleResult

__all__ = ["CAREFUL", "SCENARIOS", "Scenario", "power", "render"]

_ALPHA = 0.05
_LEDGER_REPEATS = 5
_GRADES = {"right or wrong": (0.0, 0.0), "graded": (4.0, 2.0), "graded, mostly near 1": (8.0, 0.8)}
_SPREAD = 9.0  # of the responses to a graded example about its mean: a deviation of about 0.15


@dataclass(frozen=True, slots=True)
class Scenario:
    """A suite, a model, and a plan.

    ``scores`` is a key of ``_GRADES``. Every tenth right-or-wrong example flips by chance: each fifth is answered as a
    coin falls. The scores in a cluster of ``cluster`` examples move together if ``together`` is true. ``measured`` is
    true if the plan is made from a run with five repeats. In a drop, whole clusters lose their score, or all scores
    fall a little if ``even`` is true.
    """

    scores: str
    examples: int
    tasks: int = 1
    cluster: int = 1
    together: bool = True
    repeats: int = 1
    measured: bool = False
    even: bool = False

    @property
    def name(self) -> str:
        """The scenario as a row of the table names it."""
        size = f"{self.examples}" if self.tasks == 1 else f"{self.tasks} tasks of {self.examples}"
        words = [self.scores, size]
        if self.cluster > 1:
            words.append(f"clusters of {self.cluster} that " + ("move together" if self.together else "do not"))
        words += [f"{self.repeats} repeats"] if self.repeats > 1 else []
        words += ["planned from a run" if self.measured else "planned without a run"]
        return ", ".join(words + (["all fall a little"] if self.even else []))


SCENARIOS = (
    Scenario("right or wrong", 60),
    Scenario("right or wrong", 200),
    Scenario("right or wrong", 600),
    Scenario("right or wrong", 50, tasks=10),
    Scenario("right or wrong", 200, measured=True),
    Scenario("graded", 60, measured=True),
    Scenario("graded", 200, measured=True),
    Scenario("graded, mostly near 1", 200, measured=True),
    Scenario("right or wrong", 200, cluster=5),
    Scenario("right or wrong", 200, cluster=5, measured=True),
    Scenario("graded", 200, cluster=5, measured=True),
    Scenario("right or wrong", 200, cluster=5, together=False, measured=True),
    Scenario("right or wrong", 400, cluster=5, together=False, measured=True),
    Scenario("right or wrong", 200, repeats=3),
    Scenario("right or wrong", 200, repeats=5),
    Scenario("right or wrong", 60, repeats=3, measured=True),
    Scenario("right or wrong", 200, repeats=5, measured=True),
    Scenario("graded", 200, repeats=3, measured=True),
    Scenario("right or wrong", 200, cluster=5, repeats=3, measured=True),
)
"""Kinds that the plan can know."""
CAREFUL = (
    Scenario("graded", 200),
    Scenario("right or wrong", 200, cluster=5, together=False),
    Scenario("graded", 200, measured=True, even=True),
    Scenario("right or wrong", 200, repeats=5, measured=True, even=True),
)
"""Kinds in which the careful end is all that the plan can know."""

Means = Sequence[float]


class _Model:
    """Draws the examples of one task, and answers them."""

    def __init__(self, of: Scenario, toss: random.Random) -> None:
        self.of = of
        self.toss = toss
        self.means = [mean for _ in range(of.examples // of.cluster) for mean in self._cluster()]

    def _cluster(self) -> Means:
        count = self.of.cluster
        return [self._mean()] * count if self.of.together else [self._mean() for _ in range(count)]

    def _mean(self) -> float:
        a, b = _GRADES[self.of.scores]
        return self.toss.betavariate(a, b) if a else self.toss.choices((0.0, 0.5, 1.0), (3, 2, 5))[0]

    def answers(self, repeats: int) -> list[list[float]]:
        """Return the scores of each example."""
        return [*map(list, zip(*(self._answer() for _ in range(repeats)), strict=True))]

    def _answer(self) -> list[float]:
        is_graded = any(_GRADES[self.of.scores])
        scores: list[float] = []
        for number, mean in enumerate(self.means):
            if self.of.together and number % self.of.cluster:
                scores.append(scores[-1])
            elif is_graded:
                scores.append(self.toss.betavariate(_SPREAD * mean, _SPREAD * (1 - mean)) if 0 < mean < 1 else mean)
            else:
                scores.append(float(self.toss.random() < mean))
        return scores

    def broken(self, drop: float) -> set[int]:
        """Draw the clusters that lose their score."""
        share = drop * len(self.means) / (sum(self.means) or 1)
        return {number for number in range(len(self.means) // self.of.cluster) if self.toss.random() < share}


def power(of: Scenario, rounds: int, seed: int = 0) -> float:
    """Return how often the gate's test of the overall score finds the smallest drop of the plan."""
    toss = random.Random(seed)
    return sum(_is_found(of, toss) for _ in range(rounds)) / rounds


def _is_found(of: Scenario, toss: random.Random) -> bool:
    suite = {
        f"t{number}": [Planned(_cluster(of, index), of.repeats) for index in range(of.examples)]
        for number in range(of.tasks)
    }
    found = plan(suite, 0.01, _noise(of, toss) if of.measured else {}, usual=ASSUMED_NOISE, alpha=_ALPHA)
    drop = found.overall.detectable
    if drop is None:
        return False
    tasks = []
    for _ in range(of.tasks):
        model = _Model(of, toss)
        broken = set() if of.even else model.broken(drop)
        old, new = model.answers(of.repeats), model.answers(of.repeats)
        pairs = zip(old, new, strict=True)
        changes = [
            _change(before, () if index // of.cluster in broken else after, drop if of.even else 0.0)
            for index, (before, after) in enumerate(pairs)
        ]
        tasks.append((changes, [_cluster(of, index) for index in range(of.examples)]))
    return pooled_test(tasks).p <= (_ALPHA if of.tasks == 1 else _ALPHA / 2)


def _change(old: Sequence[float], new: Sequence[float], drop: float) -> float:
    after = sum(new) / len(new) if new else 0.0
    return max(-1.0, after - drop - sum(old) / len(old))


def _cluster(of: Scenario, index: int) -> str:
    return f"c{index // of.cluster}" if of.cluster > 1 else ""


def _noise(of: Scenario, toss: random.Random) -> dict[str, Noise]:
    results = []
    for number in range(of.tasks):
        for index, scores in enumerate(_Model(of, toss).answers(_LEDGER_REPEATS)):
            details = {"scores": scores}
            results.append(_result(f"t{number}", str(index), sum(scores) / len(scores), details, _cluster(of, index)))
    return measured_noise(results)


def _result(task: str, name: str, score: float, details: Mapping[str, Sequence[float]], cluster: str) -> ExampleResult:
    passed = "passed" if score >= 0.5 else "below"
    return ExampleResult(task, name, passed, score, 0.5, "f1", "h", details=details, cluster=cluster)


def render(scenarios: Sequence[Scenario], rounds: int, seed: int) -> list[str]:
    """Return the rows of a table."""
    return [f"| {of.name} | {100 * power(of, rounds, seed):.0f} |" for of in scenarios]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for scenarios in (SCENARIOS, CAREFUL):
        print("| suite | found in % |\n| --- | ---: |")
        for of in scenarios:
            print(*render([of], options.rounds, options.seed), sep="\n", flush=True)
        print()


if __name__ == "__main__":
    main()
