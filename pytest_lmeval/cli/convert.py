"""``lmeval convert KIND SRC -o DEST``: convert a published data set to task files, and outputs to replay files."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_lmeval.cli.output import show
from pytest_lmeval.interop.convert import KINDS


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=sorted(KINDS), help=f"one of {', '.join(sorted(KINDS))}")
    parser.add_argument("source", metavar="SRC", type=Path, help="the published file")
    parser.add_argument("-o", dest="destination", metavar="DEST", type=Path, required=True, help="folder to write to")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Convert the data set, and print the command that runs the result."""
    written = KINDS[options.kind](options.source, options.destination)
    recordings = [path for path in written if path.name.endswith(".replay.jsonl")]
    adapter = f"replay:{recordings[0]}" if recordings else "SPEC"
    notes = [line for path in written if path.suffix == ".txt" for line in path.read_text("utf-8").splitlines()]
    tasks = [path for path in written if path.suffix == ".jsonl" and path not in recordings]
    paths = tasks[0] if len(tasks) == 1 else options.destination
    show([*(f"wrote {path}" for path in written), *notes, f"now: pytest {paths} --lm-adapter={adapter}"])
    return 0
