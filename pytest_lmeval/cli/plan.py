"""``lmeval plan [PATH...] --drop D``: before a run, compute its cost and the smallest drop that it can detect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from pytest_lmeval.arguments import level, share, whole
from pytest_lmeval.cli.output import add_format, show, show_json
from pytest_lmeval.cli.task_folder import Project
from pytest_lmeval.compare.plan import ASSUMED_NOISE, Suite, SuitePlan, TaskPlan, measured_noise, plan
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.aggregations import spent
from pytest_lmeval.records.runfile import RunFile, examples_of, read_run
from pytest_lmeval.report.tables import columns, percent
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

_HEADINGS = ("task", "examples", "clusters", "flips by chance", "smallest drop")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default: lm_task_paths)")
    parser.add_argument("--drop", metavar="D", type=share, required=True, help="the drop to detect, such as 0.03")
    parser.add_argument(
        "--from",
        dest="run_path",
        metavar="RUN",
        type=Path,
        help="ledger.jsonl or leaderboard.json, for its cost, its examples if no PATH is given, and the share that "
        "flips by chance if each was asked several times",
    )
    parser.add_argument(
        "--flip", metavar="F", type=share, help=f"share of examples that flips by chance (default {ASSUMED_NOISE})"
    )
    parser.add_argument("--repeats", metavar="K", type=whole(1), default=1, help="--lm-repeats of the run (default 1)")
    parser.add_argument("--alpha", metavar="A", type=level, default=0.05, help="alpha of the gate (default 0.05)")
    add_format(parser, "text", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the plan."""
    if not options.drop:
        raise UsageError("--drop 0: expected a drop above 0")
    ran = read_run(options.run_path) if options.run_path else None
    results = () if ran is None else examples_of(ran)
    suite = _suite_of(results) if ran is not None and not options.paths else _suite_at(options.paths)
    measured = {} if options.flip is not None else measured_noise(results)
    usual = ASSUMED_NOISE if options.flip is None else options.flip
    found = plan(suite, options.drop, measured, usual=usual, repeats=options.repeats, alpha=options.alpha)
    if options.format == "json":
        known = sorted(measured.keys() & suite.keys())
        show_json({**asdict(found), "spent": dict(spent(results)), "measured": known})
    else:
        noise = _noise(found, measured, options.flip)
        show([*_table(found), "", *_needed(found), *noise, *_cost(found, ran, results)])
    return 0


def _suite_at(paths: Sequence[Path]) -> Suite:
    """Return the examples that a run would collect from task files; raise UsageError if it would collect none."""
    project = Project()
    suite: dict[str, list[str]] = {}
    for file in project.files(paths):
        loaded = project.load(file, is_named=file.path in paths)
        if loaded.errors:
            raise UsageError(f"{loaded.errors[0].at(file.path)}; lmeval validate names all that is wrong")
        for task in loaded.tasks:
            suite.setdefault(task.name, []).extend(example.policy.cluster for example in task.examples)
    if not any(suite.values()):
        where = " ".join(map(str, paths)) or " ".join(map(str, project.folders))
        raise UsageError(f"no example in {where}; for eval functions, name one of their runs: --from LEDGER")
    return {task: clusters for task, clusters in suite.items() if clusters}


def _suite_of(results: Sequence[ExampleResult]) -> Suite:
    suite: dict[str, list[str]] = {}
    for result in results:
        if result.decides:
            suite.setdefault(result.task, []).append(result.cluster)
    if not suite:
        raise UsageError("the run has no example to plan with")
    return suite


def _table(found: SuitePlan) -> list[str]:
    rows = [_row(task) for task in (*found.tasks, *([found.overall] if len(found.tasks) > 1 else []))]
    return columns(_HEADINGS, rows, texts=1)


def _row(task: TaskPlan) -> list[str]:
    smallest = "none" if task.detectable is None else _points(task.detectable)
    return [printable(task.task, keep=""), f"{task.examples:,}", f"{task.clusters:,}", percent(task.noise), smallest]


def _needed(found: SuitePlan) -> Iterator[str]:
    need, overall = found.needed, found.overall
    asked = "once" if found.repeats == 1 else f"{found.repeats} times"
    yield "smallest drop: what two runs of the suite would show with 80 % power, each example asked " + asked
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
    yield "  or " + (f"--lm-repeats {need.repeats}" if need.repeats else "no number of repeats: too few examples")


def _noise(found: SuitePlan, measured: dict[str, float], given: float | None) -> Iterator[str]:
    assumed = [task.task for task in found.tasks if task.task not in measured]
    if not assumed or given is not None:
        return
    named = "" if len(assumed) == len(found.tasks) else f" in {', '.join(printable(name, keep='') for name in assumed)}"
    how = "a run with --lm-repeats measures it; --flip F sets it"
    yield f"{percent(ASSUMED_NOISE)} flips by chance{named} is an assumption: {how}"


def _cost(found: SuitePlan, ran: RunFile | None, results: Sequence[ExampleResult]) -> Iterator[str]:
    if ran is None:
        return
    used = spent(results)
    before = max([1, *(len(result.outputs) for result in results)])
    counts = {"now": found.overall.examples * found.repeats}
    if found.needed.examples > found.overall.examples:
        counts["with those examples"] = found.needed.examples * found.repeats
    if (found.needed.repeats or 0) > found.repeats:
        counts["with those repeats"] = found.overall.examples * (found.needed.repeats or 1)
    each = used.get("cost_per_example")
    for name, responses in counts.items():
        cost = "" if each is None else f", cost {each / before * responses:.4g}"
        time = f", {responses * used['p50_ms'] / 1000:.0f} s of requests one by one" if "p50_ms" in used else ""
        yield f"{name}: {responses:,} responses{cost}{time} (by {ran.path})"


def _points(drop: float) -> str:
    return f"{100 * drop:.3g} points"
