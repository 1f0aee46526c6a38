"""``lmeval calibrate A B...``: estimate how often the gate raises false alarms on a suite, from runs of one model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pytest_lmeval.arguments import whole
from pytest_lmeval.cli.output import add_criteria, add_format, criteria_of, show_json, show_tables
from pytest_lmeval.compare.calibrate import Calibration, Flipping, TaskNoise, calibrate, flipping
from pytest_lmeval.records.runfile import read_run
from pytest_lmeval.report.tables import percent, score_text
from pytest_lmeval.report.terminal_text import Screen
from pytest_lmeval.text import printable

_SHOWN = 10
_HEADINGS = ("task", "examples", "score A", "score B", "flipped", "flip rate", "95 % interval", "smallest drop shown")
_DROP = ("score A", "score B", "flipped", "95 % interval", "examples")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="A", type=Path, help="ledger.jsonl or leaderboard.json of a run")
    parser.add_argument("other", metavar="B", type=Path, help="another run of the same model on the same tasks")
    parser.add_argument("more", metavar="C", nargs="*", type=Path, help="further runs, to count flips over all runs")
    add_criteria(parser, "default: ")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="seed of the simulated rounds (default 0)")
    parser.add_argument(
        "--rounds", metavar="N", type=whole(1), help="simulated rounds (default: as many as a few seconds allow)"
    )
    add_format(parser, "text", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the calibration."""
    runs, more = (read_run(options.one), read_run(options.other)), [*map(read_run, options.more)]
    found = calibrate(*runs, criteria_of(options), more=more, seed=options.seed, rounds=options.rounds)
    # Two runs cannot show how often an example flips.
    flips = flipping([*runs, *more]) if more else ()
    if options.format == "json":
        show_json({**asdict(found), "flipping": [*map(asdict, flips)]})
    else:
        show_tables(lambda screen: [*_lines(found, screen), *_flip_lines(flips)])
    return 0


def _flip_lines(flips: Sequence[Flipping]) -> list[str]:
    if not flips:
        return []
    more = [f"... and {len(flips) - _SHOWN} more (--format json lists them)"] if len(flips) > _SHOWN else []
    return ["", f"{len(flips)} example(s) flip by chance:", *(f"  {each.line}" for each in flips[:_SHOWN]), *more]


def _lines(found: Calibration, screen: Screen) -> list[str]:
    rows = [_row(noise) for noise in (*found.tasks, found.overall)]
    lines = [printable(f"note: {note}", keep="") for note in found.notes]
    lines += [*screen.cells(_HEADINGS, rows, drop=_DROP), "", *_alarm_lines(found), ""]
    return lines + _needed_lines(found, screen)


def _row(noise: TaskNoise) -> list[str]:
    low, high = noise.ci95
    return [
        noise.task,
        str(noise.examples),
        *map(score_text, noise.scores),
        str(noise.flips),
        percent(noise.flip_rate),
        f"{percent(low)} to {percent(high)}",
        "none" if noise.detectable is None else f"{100 * noise.detectable:.1f} points",
    ]


def _alarm_lines(found: Calibration) -> list[str]:
    alarms = found.false_alarms
    low, high = alarms.ci95
    rule = "strict" if found.criteria.strict else f"alpha {found.criteria.alpha:g}"
    return [
        f"The gate ({rule}) calls {alarms.alarms} of {alarms.rounds} simulated runs of this model a regression:",
        f"a false-alarm rate of {percent(alarms.rate)} ({percent(low)} to {percent(high)}).",
    ]


def _needed_lines(found: Calibration, screen: Screen) -> list[str]:
    rows = [
        (
            f"{100 * need.drop:g} point{'' if need.drop == 0.01 else 's'}",
            "not achievable" if need.repeats is None else str(need.repeats),
            f"{need.examples:,}",
        )
        for need in found.needed
    ]
    asked = f"each asked {found.repeats} time(s)"
    lines = ["To detect a drop of the overall score with 80 % power takes either repeats or examples:", ""]
    return lines + screen.cells(("drop", "--lm-repeats", f"or examples, {asked}"), rows)
