"""``lmeval publish KIND LEDGER -o FILE``: write a run in another tool's format."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import show, writing
from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.publish import KINDS, About, publisher
from pytest_lmeval.interop.publish.eee import RELATIONSHIPS
from pytest_lmeval.records.runfile import read_run


def configure(parser: argparse.ArgumentParser) -> None:
    """Add one subcommand for each format."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, written in KINDS.items():
        of_kind = kinds.add_parser(name, help=written, description=f"Write {written}.")
        of_kind.add_argument("run_file", metavar="LEDGER", type=Path, help="ledger.jsonl, or a leaderboard.json")
        of_kind.add_argument("-o", dest="output", metavar="FILE", type=Path, required=True, help="file to write")
        of_kind.add_argument("--model-id", metavar="ID", default="", help="the model's name (default: the adapter's)")
        if name == "eee":
            of_kind.add_argument("--organization", metavar="NAME", default="", help="who ran it (default: unknown)")
            of_kind.add_argument(
                "--relationship", choices=RELATIONSHIPS, default="other", help="relation to the model's developer"
            )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the file."""
    found = read_run(options.run_file)
    about = About(
        options.model_id, getattr(options, "organization", ""), getattr(options, "relationship", About().relationship)
    )
    data = publisher(options.kind)(found, about)
    if options.output.exists() and options.output.samefile(options.run_file):
        raise UsageError(f"-o {options.output}: this is the run to read; name another file")
    with writing(f"-o {options.output}"):
        write_atomically(options.output, data)
    show([f"wrote {options.output}"])
    return 0
