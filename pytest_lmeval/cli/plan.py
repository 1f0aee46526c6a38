"""``lmeval plan [PATH...] --drop D``: before a run, compute its cost and the smallest drop that it can detect."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pytest_lmeval.arguments import level, share, whole
from pytest_lmeval.cli.output import add_format, show_json, show_tables
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.compare.noise import NO_NOISE, Noise, measured_noise, repeats_of
from pytest_lmeval.compare.plan import ASSUMED_NOISE, Planned, Suite, SuitePlan, TaskPlan, plan
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.aggregations import spent
from pytest_lmeval.records.runfile import RunFile, examples_of, read_run
from pytest_lmeval.report.tables import percent
from pytest_lmeval.report.terminal_text import Screen
from pytest_lmeval.run.library import ExampleUnit
from pytest_lmeval.run.plan import check_repeats
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_HEADINGS = ("task", "examples", "responses", "clusters", "flips by chance", "smallest drop")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default: lm_task_paths)")
    parser.add_argument("--drop", metavar="D", type=share, required=True, help="the drop to detect, such as 0.03")
    parser.add_argument(
        "--from",
        dest="run_path",
        metavar="RUN",
        type=Path,
        help="ledger.jsonl or leaderboard.json, for its cost, its scores, its examples if no PATH is given, and the "
        "share that flips by chance if each was asked several times",
    )
    parser.add_argument(
        "--flip", metavar="F", type=share, help=f"share of examples that flips by chance (default {ASSUMED_NOISE})"
    )
    parser.add_argument(
        "--repeats", metavar="K", type=whole(1), help="--lm-repeats of the run (default: those of the tasks, or 1)"
    )
    parser.add_argument("--alpha", metavar="A", type=level, default=0.05, help="alpha of the gate (default 0.05)")
    add_format(parser, "text", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the plan."""
    if not options.drop:
        raise UsageError("--drop 0: expected a drop above 0")
    ran = read_run(options.run_path) if options.run_path else None
    results = () if ran is None else examples_of(ran)
    is_run = ran is not None and not options.paths
    suite = _suite_of(ran, results, options.repeats) if is_run else _suite_at(options.paths, options.repeats)
    noise = {task: of for task, of in measured_noise(results).items() if task in suite}
    if options.flip is not None:
        noise = {task: replace(noise.get(task, NO_NOISE), flips=options.flip) for task in suite}
    found = plan(suite, options.drop, noise, usual=ASSUMED_NOISE, alpha=options.alpha)
    if options.format == "json":
        known = sorted(task for task, of in noise.items() if of.flips is not None and options.flip is None)
        show_json({**asdict(found), "spent": dict(spent(results)), "measured": known})
    else:
        rest = [*_needed(found), *_assumed(found, suite, noise), *_cost(found, ran, results)]
        show_tables(lambda screen: [*_table(found, screen), "", *rest])
    return 0


def _suite_at(paths: Sequence[Path], repeats: int | None) -> Suite:
    """Return the examples that a run of ``paths`` would collect; raise UsageError for an invalid file or no example."""
    project = Project()
    units: list[ExampleUnit] = []
    for file in project.files(paths):
        loaded = project.load(file, is_named=file.path in paths)
        if loaded.errors:
            raise UsageError(f"{loaded.errors[0].at(file.path)}; lmeval validate lists all faults")
        units += (ExampleUnit(task, example) for task in loaded.tasks for example in task.examples)
    if not units:
        where = " ".join(map(str, paths)) or " ".join(map(str, project.folders))
        raise UsageError(f"no example in {where}; for eval functions, name one of their runs: --from LEDGER")
    check_repeats(units, repeats)
    suite: dict[str, list[Planned]] = {}
    for unit in units:
        policy, metric = unit.example.policy, project.registry.metrics.get(unit.task.metric_name(unit.example))
        is_graded = metric is not None and not metric.binary
        planned = Planned(policy.cluster, policy.repeats or repeats or 1, is_graded)
        suite.setdefault(unit.task.name, []).append(planned)
    return suite


def _suite_of(ran: RunFile | None, results: Sequence[ExampleResult], repeats: int | None) -> Suite:
    """Return the examples of a finished run, each with the number of responses to plan for."""
    from_option = ran is not None and ran.manifest.get("repeats", 1) != 1
    suite: dict[str, list[Planned]] = {}
    for result in results:
        if result.decides:
            own = 0 if from_option else len(repeats_of(result))
            if own and repeats not in (None, own):
                raise UsageError(f"--repeats {repeats}: {result.task} has {own} repeats of its own; omit the option")
            suite.setdefault(result.task, []).append(Planned(result.cluster, own or repeats or 1))
    if not suite:
        raise UsageError("the run has no example to plan with")
    return suite


def _table(found: SuitePlan, screen: Screen) -> list[str]:
    rows = [_row(task) for task in (*found.tasks, *([found.overall] if len(found.tasks) > 1 else []))]
    return screen.cells(_HEADINGS, rows, drop=("clusters",))


def _row(task: TaskPlan) -> list[str]:
    smallest = "none" if task.detectable is None else _points(task.detectable)
    counts = (f"{count:,}" for count in (task.examples, task.responses, task.clusters))
    return [printable(task.task, keep=""), *counts, percent(task.noise), smallest]


def _needed(found: SuitePlan) -> Iterator[str]:
    need, overall = found.needed, found.overall
    lost = "examples, or all of a cluster," if overall.clusters < overall.examples else "examples"
    yield f"smallest drop: two runs of the suite show it with 80 % power, if some {lost} lose their whole score"
    if overall.detectable is not None and overall.detectable <= need.drop:
        yield f"a drop of {_points(need.drop)} of the overall score would be detected"
        return
    yield f"to detect a drop of {_points(need.drop)} of the overall score takes"
    if need.examples:
        size = overall.examples / overall.clusters
        shared = f", in {round(need.examples / size):,} clusters" if overall.clusters < overall.examples else ""
        yield f"  {need.examples:,} examples instead of {overall.examples:,}{shared}"
    else:
        yield "  more examples than can be asked"
    yield "  or " + (_more_often(found, need.repeats) if need.repeats else "no number of repeats: too few examples")


def _more_often(found: SuitePlan, times: int) -> str:
    if found.overall.responses == found.overall.examples * found.repeats:
        return f"--lm-repeats {times}"
    return f"{times} times as many repeats of each task"


def _assumed(found: SuitePlan, suite: Suite, noise: Mapping[str, Noise]) -> Iterator[str]:
    of = {task.task: noise.get(task.task, NO_NOISE) for task in found.tasks}
    if flips := [task for task in of if of[task].flips is None]:
        how = "a run with --lm-repeats measures it; --flip F sets it"
        yield f"{percent(ASSUMED_NOISE)} flips by chance{_of(flips, of)} is an assumption: {how}"
    together = [task.task for task in found.tasks if task.shared is not None and of[task.task].shared is None]
    if together:
        yield (
            f"flips in a cluster are assumed to happen together{_of(together, of)}, a cautious assumption: a run with "
            "--lm-repeats measures it"
        )
    if graded := [task for task in of if of[task].loss is None and any(each.is_graded for each in suite[task])]:
        yield f"scores are assumed to fall from 1 to 0{_of(graded, of)}, which is cautious: --from RUN measures them"


def _of(tasks: Sequence[str], every: Collection[str]) -> str:
    return "" if len(tasks) == len(every) else f" in {', '.join(printable(name, keep='') for name in tasks)}"


def _cost(found: SuitePlan, ran: RunFile | None, results: Sequence[ExampleResult]) -> Iterator[str]:
    if ran is None:
        return
    used = spent(results)
    before = sum(len(repeats_of(result)) or 1 for result in results) / max(1, len(results))
    now, need = found.overall.responses, found.needed
    counts = {"now": now}
    if need.examples > found.overall.examples:
        counts["with those examples"] = round(now / found.overall.examples * need.examples)
    if (need.repeats or 0) > found.repeats:
        counts["with those repeats"] = now // found.repeats * (need.repeats or 1)
    each = used.get("cost_per_example")
    for name, responses in counts.items():
        cost = "" if each is None else f", cost {each / before * responses:.4g}"
        time = f", {responses * used['p50_ms'] / 1000:.0f} s of requests one by one" if "p50_ms" in used else ""
        yield f"{name}: {responses:,} responses{cost}{time} (by {ran.path})"


def _points(drop: float) -> str:
    return f"{100 * drop:.3g} points"
