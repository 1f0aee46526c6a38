"""The parts of the benchmark: each runs its variants interleaved and returns rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from measure import DEPENDENCIES, OURS, Cost, Run, interleave, slope
from project import eval_file, plain_file, task_file
from table import Row

__all__ = ["BARE", "FULL", "PARTS", "QUICK", "Sizes"]

BARE = Run((), "1 passed", OURS, "bystander")
"""pytest without the plugin, on one empty test."""

_PLAIN = "@parametrize"
_RECORDS = "task file"
_KIB = 1024
_US = 1e6
_MS = 1e3


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many examples each part runs, and how often."""

    some: int
    many: int
    failing: int
    rounds: int
    rounds_of_many: int
    rounds_of_bystander: int

    @property
    def files(self) -> tuple[int, ...]:
        """The numbers of examples that task files are needed of."""
        return tuple(sorted({1, self.some, self.many, self.failing}))


FULL = Sizes(some=10_000, many=100_000, failing=2_000, rounds=3, rounds_of_many=3, rounds_of_bystander=25)
QUICK = Sizes(some=400, many=800, failing=100, rounds=1, rounds_of_many=1, rounds_of_bystander=1)

Part = Callable[[Path, Sizes], list[Row]]


def passing(scene: Path, sizes: Sizes) -> list[Row]:
    """Compare right answers with a parametrized test: start-up, CPU, time and memory, and whether they grow."""
    some, many = sizes.some, sizes.many
    runs = {"ours 1": _ours(1), "plain 1": _plain(1), "bare": BARE}
    runs |= {f"ours {some}": _ours(some), f"plain {some}": _plain(some)}
    cost = interleave(runs, scene, sizes.rounds)
    rows = [
        Row("start-up, 1 example, wall", "s", cost["ours 1"].wall, "bare pytest", cost["bare"].wall, 0.5),
        Row("start-up, 1 example, CPU", "s", cost["ours 1"].cpu, "bare pytest", cost["bare"].cpu),
        *_per_example(cost, some),
    ]
    # The smaller size once more beside the larger one: growth is compared within the same minutes.
    sized = {f"{who} {n}": run(n) for n in (some, many) for who, run in (("ours", _ours), ("plain", _plain))}
    cost |= interleave(sized, scene, sizes.rounds_of_many, warm_up=False)
    what = f"growth: CPU per example at {many:,} over that at {some:,}"
    growth = {who: _slope(cost, who, many).cpu / _slope(cost, who, some).cpu for who in ("ours", "plain")}
    return [*rows, *_per_example(cost, many), Row(what, "x", growth["ours"], _PLAIN, growth["plain"], 1.05, "ratio")]


def _per_example(cost: Mapping[str, Cost], n: int) -> list[Row]:
    of = f"{n:,} examples"
    each, plain_each = _slope(cost, "ours", n), _slope(cost, "plain", n)
    all_of_it, plain = cost[f"ours {n}"], cost[f"plain {n}"]
    return [
        Row(f"CPU per example, {of}", "us", each.cpu * _US, _PLAIN, plain_each.cpu * _US, 1.0, "ratio"),
        Row(f"wall, {of}", "s", all_of_it.wall, _PLAIN, plain.wall),
        Row(f"memory per example, {of}", "KiB", each.rss / _KIB, _PLAIN, plain_each.rss / _KIB, 8.0),
        Row(f"peak memory, {of}", "MiB", all_of_it.rss / _KIB**2, _PLAIN, plain.rss / _KIB**2),
    ]


def record(scene: Path, sizes: Sizes) -> list[Row]:
    """Measure what board and ledger cost: the same run without hash, result JSON, ledger and board."""
    some = sizes.some
    runs: dict[str, Run] = {}
    for n in (1, some):
        runs |= {f"ours {n}": _ours(n), f"off {n}": _ours(n, "-punrecorded"), f"plain {n}": _plain(n)}
    cost = interleave(runs, scene, sizes.rounds)
    ours, without, plain = (_slope(cost, who, some).cpu * _US for who in ("ours", "off", "plain"))
    return [
        Row("CPU per example with board and ledger", "us", ours, "without them", without, 0.1 * plain, "difference"),
        Row("CPU per example without them", "us", without, _PLAIN, plain, 1.0, "ratio"),
    ]


def failing(scene: Path, sizes: Sizes) -> list[Row]:
    """Compare wrong answers with failing asserts."""
    n = sizes.failing
    runs: dict[str, Run] = {}
    for size in (1, n):
        outcome = f"{size} failed"
        runs[f"ours {size}"] = Run((task_file(size), "--lm-adapter=instant:Wrong"), outcome)
        runs[f"plain {size}"] = Run((plain_file(size, "Wrong"),), outcome, OURS)
    cost = interleave(runs, scene, sizes.rounds)
    ours, plain = (_slope(cost, who, n).cpu * _MS for who in ("ours", "plain"))
    return [Row(f"CPU per failing example, {n:,} examples", "ms", ours, f"{_PLAIN}, assert", plain, 1.0)]


def workers(scene: Path, sizes: Sizes) -> list[Row]:
    """Compare two workers with one process: an instant model shows what handing out costs."""
    n, two = sizes.some, ("-n2",)
    runs = {"ours": _ours(n), "ours -n2": _ours(n, *two), "plain": _plain(n), "plain -n2": _plain(n, *two)}
    cost = interleave(runs, scene, 1)
    return [
        Row(f"-n 2, wall, {n:,} examples", "s", cost["ours -n2"].wall, "one process", cost["ours"].wall),
        Row(f"-n 2, CPU, {n:,} examples", "s", cost["ours -n2"].cpu, "one process", cost["ours"].cpu),
        Row(f"-n 2, wall, {n:,} examples", "s", cost["ours -n2"].wall, f"{_PLAIN} -n 2", cost["plain -n2"].wall),
        Row(f"-n 2, CPU, {n:,} examples", "s", cost["ours -n2"].cpu, f"{_PLAIN} -n 2", cost["plain -n2"].cpu),
    ]


def functions(scene: Path, sizes: Sizes) -> list[Row]:
    """Compare examples that are calls of a test function, with three steps each, with records of a task file."""
    n = sizes.some
    runs: dict[str, Run] = {}
    for size in (1, n):
        runs[f"eval {size}"] = Run((eval_file(size), "--lm-adapter=instant:Right"), f"{size} passed")
        runs[f"ours {size}"] = _ours(size)
    cost = interleave(runs, scene, sizes.rounds)
    ours, records = (_slope(cost, who, n) for who in ("eval", "ours"))
    of = f"eval function with three steps, {n:,} examples"
    return [
        Row(f"{of}, CPU per example", "ms", ours.cpu * _MS, _RECORDS, records.cpu * _MS),
        Row(f"{of}, memory per example", "KiB", ours.rss / _KIB, _RECORDS, records.rss / _KIB, 40.0),
    ]


def collection(scene: Path, sizes: Sizes) -> list[Row]:
    """Compare reading and collecting alone."""
    runs: dict[str, Run] = {}
    for n in (1, sizes.some):
        outcome = "1 test collected" if n == 1 else f"{n} tests collected"
        runs[f"plain {n}"] = Run((plain_file(n), "--collect-only"), outcome, OURS)
        runs[f"ours {n}"] = Run((task_file(n), "--collect-only"), outcome)
    cost = interleave(runs, scene, sizes.rounds)
    ours, plain = (_slope(cost, who, sizes.some) for who in ("ours", "plain"))
    return [
        Row(
            f"collection alone, CPU per example, {sizes.some:,} examples", "us", ours.cpu * _US, _PLAIN, plain.cpu * _US
        )
    ]


def bystander(scene: Path, sizes: Sizes) -> list[Row]:
    """Measure what a project without a task pays for the plugin being installed."""
    runs = {
        "with": Run((), "1 passed", (), "bystander"),
        "without": BARE,
        "alone": Run((), "1 passed", (*OURS, *DEPENDENCIES), "bystander"),
    }
    cost = interleave(runs, scene, sizes.rounds_of_bystander)
    what, against = "unrelated suite of one test", "plugin blocked"
    alone = "and what it requires"
    mine = cost["with"]
    return [
        Row(f"{what}, wall", "ms", mine.wall * _MS, against, cost["without"].wall * _MS, 20.0, "difference"),
        Row(f"{what}, CPU", "ms", mine.cpu * _MS, against, cost["without"].cpu * _MS, 20.0, "difference"),
        Row(f"{what}, wall", "ms", mine.wall * _MS, f"{against}, {alone}", cost["alone"].wall * _MS),
    ]


def _slope(cost: Mapping[str, Cost], who: str, examples: int) -> Cost:
    return slope(cost[f"{who} {examples}"], cost[f"{who} 1"], examples)


def _ours(examples: int, *more: str) -> Run:
    return Run((task_file(examples), "--lm-adapter=instant:Right", *more), f"{examples} passed")


def _plain(examples: int, *more: str) -> Run:
    return Run((plain_file(examples), *more), f"{examples} passed", OURS)


PARTS: Mapping[str, Part] = {
    "passing": passing,
    "record": record,
    "failing": failing,
    "workers": workers,
    "functions": functions,
    "collection": collection,
    "bystander": bystander,
}
