"""``lmeval init [DIR]``: something small that runs green at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_lmeval.cli.output import show
from pytest_lmeval.starter import write_starter


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="where (default: here)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the starter and say how to run it."""
    written = write_starter(options.folder)
    place = "" if options.folder == Path() else f"cd {options.folder} && "
    show([*(f"wrote {path}" for path in written), f"now: {place}pytest tasks/ --lm-adapter=toy"])
    return 0
