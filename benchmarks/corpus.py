"""Runs the corpus of the sandbox's tests at every level and prints what each level stops.

Usage: ``python benchmarks/corpus.py [--level NAME]... [--class NAME]... [--names]``; about two minutes. The programs
are in ``tests/sandbox/corpus``, and what they try is bounded: where a level does not stop them, they change canaries.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from machine import describe_machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_lmeval.sandbox import open_sandbox, require_level
from tests.sandbox.corpus.programs import CLASSES, load_programs
from tests.sandbox.corpus.scene import scene_in
from tests.sandbox.corpus.trial import Outcome, run_corpus

LEVELS = ("confined", "process", "container")
FAULTS = {"forged": "forged", "escaped": "escapes", "hung": "hung", "false failures": "failure"}
HEADER = ("class", "level", "programs", *FAULTS)


def main() -> None:
    """Run what was asked for and print a row for each class at each level."""
    options = _parse()
    rows: list[tuple[str, ...]] = []
    named: list[str] = []
    started = time.monotonic()
    for level in options.level or LEVELS:
        missing = require_level(level)
        if missing:
            print(missing)
            continue
        outcomes = _run(level, options.classes or CLASSES)
        rows += [_row(level, kind, outcomes) for kind in options.classes or CLASSES]
        named += [line for outcome in outcomes for line in _names(level, outcome)]
    print(f"{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    print(_table([HEADER, *rows]))
    if options.names:
        print("", *named, sep="\n")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the sandbox's corpus at every level.")
    parser.add_argument("--level", action="append", choices=LEVELS, help="by default all of them")
    parser.add_argument("--class", action="append", choices=CLASSES, dest="classes", help="by default all of them")
    parser.add_argument("--names", action="store_true", help="also name what got through")
    return parser.parse_args()


def _run(level: str, classes: Sequence[str]) -> list[Outcome]:
    programs = [program for program in load_programs() if program.kind in classes]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="corpus-"))
        scene = stack.enter_context(scene_in(Path(folder)))
        return run_corpus(stack.enter_context(open_sandbox(level)), programs, scene)


def _row(level: str, kind: str, outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    own = [outcome for outcome in outcomes if outcome.program.kind == kind]
    counts = [sum(bool(getattr(outcome, fault)) for outcome in own) for fault in FAULTS.values()]
    return (kind, level, *map(str, (len(own), *counts)))


def _names(level: str, outcome: Outcome) -> Iterable[str]:
    program = outcome.program
    for found in (*outcome.forged, *outcome.escapes, outcome.hung, outcome.failure):
        if found:
            yield f"{program.kind} at {level}: {program.name}: {found}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


if __name__ == "__main__":
    main()
