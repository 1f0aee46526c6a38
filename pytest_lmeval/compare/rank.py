"""Several models on the same examples: who is ahead, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, TypeVar

from pytest_lmeval.compare.pairing import check_pairing, content_of
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.aggregations import spent
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.stats.bounds import change_bounds, level_of
from pytest_lmeval.stats.intervals import mean, overall_bounds
from pytest_lmeval.stats.paired import PairedTest, holm, pooled_test

ALPHA = 0.05
"""How often some model of several equal ones may be called worse than the best."""
Interval = tuple[float, float]
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Standing:
    """One model's place. All numbers are of the examples that every model has a score for.

    ``score`` is the unweighted mean of ``tasks``. ``win_rate`` is the share of comparisons, example by example with
    every other model, that it wins; a tie counts half. ``difference`` is ``score`` less that of the best;
    ``difference_ci95`` is what it may be, each end at ``level``: the intervals of all pairs hold together in 95 % of
    rankings. All three are None for the best itself. ``p_adjusted`` is the two-sided p of that difference, by Holm's
    procedure over all pairs of models: which of them is the best is known by the same answers. ``is_worse`` says that
    it is at most the ranking's alpha: then, and only then, does the interval leave out 0. ``p95_ms`` and ``cost`` are
    those of the whole run.
    ``left_out`` counts the scored examples of this model that not all of them share.
    """

    name: str
    path: str
    score: float
    ci95: Interval | None
    tasks: Mapping[str, float]
    win_rate: float
    difference: float | None
    difference_ci95: Interval | None
    left_out: int
    p_adjusted: float = 1.0
    is_worse: bool = False
    p95_ms: float | None = None
    cost: float | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The standings, the best first; ``examples`` counts those shared, by task; ``alpha`` is the level of the test."""

    standings: tuple[Standing, ...]
    examples: Mapping[str, int]
    alpha: float = ALPHA

    @property
    def not_worse(self) -> list[str]:
        """The names of those that are not significantly worse than the best, the best among them."""
        return [standing.name for standing in self.standings if not standing.is_worse]

    def to_json(self) -> dict[str, Any]:
        """Return the ranking as JSON values."""
        return {
            "examples": dict(self.examples),
            "alpha": self.alpha,
            "not_worse": self.not_worse,
            "standings": [asdict(standing) for standing in self.standings],
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """One model's scores of the shared examples, by task; the clusters of the examples are the same for all."""

    name: str
    run: RunFile
    tasks: Mapping[str, Sequence[float]]
    scored: int

    @property
    def means(self) -> dict[str, float]:
        return {task: mean(scores) for task, scores in self.tasks.items()}

    @property
    def score(self) -> float:
        return mean(list(self.means.values()))


def rank(runs: Sequence[RunFile], pair_by: str = "content", alpha: float = ALPHA) -> Ranking:
    """Return the ranking of two runs or more; raise UsageError that names those which share no example.

    Examples are the same where task, id and content hash are; with ``pair_by`` "id", the hash without the prompt. Ties
    keep the order of the names.
    """
    names = _names(runs)
    for run in runs:
        check_pairing(examples_of(run), pair_by, run.path)
    held = [_scored(run, pair_by) for run in runs]
    shared = _shared(dict(zip(names, held, strict=True)))
    clusters = _by_task(shared, {key: held[0][key][1] for key in shared})
    entries = [
        _Entry(name, run, _by_task(shared, {key: scores[key][0] for key in shared}), len(scores))
        for name, run, scores in zip(names, runs, held, strict=True)
    ]
    wins = _win_rates(entries)
    entries.sort(key=lambda entry: (-entry.score, entry.name))
    tests = {(one.name, other.name): _test(other, one, clusters) for one, other in combinations(entries, 2)}
    adjusted = holm({names: _two_sided(test) for names, test in tests.items()})
    standings = [_standing(entry, clusters, wins[entry.name]) for entry in entries]
    best = entries[0].name
    standings[1:] = [
        _beside(standing, tests[best, standing.name], (adjusted[best, standing.name], alpha, len(tests)))
        for standing in standings[1:]
    ]
    return Ranking(tuple(standings), {task: len(members) for task, members in clusters.items()}, alpha)


def by_config(runs: Sequence[RunFile]) -> list[RunFile]:
    """Return a run for each variant of the tasks in ``runs``, named by its config, with the tasks named alike.

    Of several runs the adapter's name goes before the config's. Tasks without variants are left out. Raises UsageError
    where a run has none.
    """
    return [variant for run in runs for variant in _variants(run, with_name=len(runs) > 1)]


def _variants(run: RunFile, *, with_name: bool) -> list[RunFile]:
    # A variant is called TASK@CONFIG, and says so by its values.
    names = {name: name.rpartition("@") for name, info in run.infos.items() if info.config and "@" in name}
    configs = dict.fromkeys(config for _, _, config in names.values())
    if len(configs) < 2:
        raise UsageError(f"{run.path}: no variants of a task; --by config takes a run whose --lm-config is a list")
    found = []
    for config in configs:
        tasks = {name: task for name, (task, _, own) in names.items() if own == config}
        results = [replace(each, task=tasks[each.task]) for each in examples_of(run) if each.task in tasks]
        facts = replace(run.facts, adapter=f"{run.adapter} {config}" if with_name else config)
        path = run.path.with_name(f"{run.path.name}@{config}")
        found.append(replace(run, path=path, facts=facts, results=tuple(results), board=None))
    return found


_Key = tuple[str, str, str]
_Held = Mapping[_Key, tuple[float, str]]
_Clusters = Mapping[str, Sequence[str]]


def _standing(entry: _Entry, clusters: _Clusters, wins: float) -> Standing:
    took = spent(examples_of(entry.run))
    return Standing(
        name=entry.name,
        path=str(entry.run.path),
        score=entry.score,
        ci95=overall_bounds([(scores, clusters[task]) for task, scores in entry.tasks.items()]),
        tasks=entry.means,
        win_rate=wins,
        difference=None,
        difference_ci95=None,
        left_out=entry.scored - sum(map(len, clusters.values())),
        p95_ms=took.get("p95_ms"),
        cost=took.get("cost"),
    )


def _beside(standing: Standing, test: PairedTest, judged: tuple[float, float, int]) -> Standing:
    """Return the standing beside the best. ``judged`` are Holm's p, alpha, and how many pairs are tested."""
    p_holm, alpha, pairs = judged
    p = _two_sided(test)
    is_worse = p_holm <= alpha
    level = level_of(p, p_holm, alpha, pairs) / 2
    ends = None if test.sums is None else change_bounds(test.sums, p / 2, level, is_shown=is_worse)
    return replace(
        standing,
        difference=test.change,
        difference_ci95=ends,
        p_adjusted=p_holm,
        is_worse=is_worse,
        level=level,
    )


def _two_sided(test: PairedTest) -> float:
    # Where no example tells them apart, the one-sided p is 1, and not half of the ways to toss no signs.
    return 1.0 if test.p >= 1.0 else min(1.0, 2 * min(test.p, 1.0 - test.p))


def _test(one: _Entry, other: _Entry, clusters: _Clusters) -> PairedTest:
    pairs = {task: zip(scores, other.tasks[task], strict=True) for task, scores in one.tasks.items()}
    return pooled_test([([own - theirs for own, theirs in pair], clusters[task]) for task, pair in pairs.items()])


def _names(runs: Sequence[RunFile]) -> list[str]:
    twice = [path for path, count in Counter(str(run.path) for run in runs).items() if count > 1]
    if twice:
        raise UsageError(f"{', '.join(twice)}: named more than once")
    if len(runs) < 2:
        raise UsageError("a ranking takes two boards or more")
    adapters = Counter(run.adapter for run in runs)
    return [run.adapter if adapters[run.adapter] == 1 else f"{run.adapter} ({run.path})" for run in runs]


def _scored(run: RunFile, pair_by: str) -> dict[_Key, tuple[float, str]]:
    return {
        (result.task, result.id, content_of(result, pair_by)): (result.score, result.cluster)
        for result in examples_of(run)
        if result.score is not None and result.is_scored
    }


def _shared(held: Mapping[str, _Held]) -> list[_Key]:
    for (first, one), (second, other) in combinations(held.items(), 2):
        if one.keys().isdisjoint(other):
            raise UsageError(f"{first} and {second} share no scored example: {_why(one, other)}")
    shared = set.intersection(*(set(scores) for scores in held.values()))
    if not shared:
        raise UsageError(f"no example has a score from all of {', '.join(held)}; rank fewer of them at a time")
    return sorted(shared)


def _why(one: _Held, other: _Held) -> str:
    if {key[:2] for key in one} & {key[:2] for key in other}:
        return "the ids are the same and their content is not; run both on the same task files"
    tasks, others = ({task for task, _, _ in held} for held in (one, other))
    if tasks & others:
        return f"of {_some(tasks & others)} they have other ids"
    return f"the tasks of one are {_some(tasks)}, those of the other {_some(others)}"


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return (", ".join(ordered[:3]) or "none") + more


def _by_task(keys: Iterable[_Key], values: Mapping[_Key, _Value]) -> dict[str, list[_Value]]:
    tasks: dict[str, list[_Value]] = {}
    for key in keys:
        tasks.setdefault(key[0], []).append(values[key])
    return tasks


def _win_rates(entries: Sequence[_Entry]) -> dict[str, float]:
    scores = {entry.name: [score for task in sorted(entry.tasks) for score in entry.tasks[task]] for entry in entries}
    points = dict.fromkeys(scores, 0.0)
    for (first, one), (second, other) in combinations(scores.items(), 2):
        won = math.fsum(_points(own, theirs) for own, theirs in zip(one, other, strict=True))
        points[first] += won
        points[second] += len(one) - won
    return {name: points[name] / (len(scores) - 1) / len(values) for name, values in scores.items()}


def _points(own: float, other: float) -> float:
    return 0.5 if own == other else float(own > other)
