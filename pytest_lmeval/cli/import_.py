"""``lmeval import KIND SRC -o DEST``: import another tool's files."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_lmeval.cli.output import show
from pytest_lmeval.interop.importers import KINDS, importer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add one subcommand for each kind of source."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name, kind in KINDS.items():
        of_kind = kinds.add_parser(name, help=kind.source, description=f"Import {kind.source}.")
        of_kind.add_argument("source", metavar="SRC", type=Path, help=kind.source)
        of_kind.add_argument("-o", dest="destination", metavar="DEST", type=Path, required=True, help=kind.destination)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import the files, and print remarks and the next commands; return 1 if part of the source was omitted."""
    found = importer(options.kind)(options.source, options.destination)
    show([*found.listed(), *(f"wrote {path}" for path in found.files.write())])
    show([f"now: {' && '.join(found.next_steps)}"])
    return 1 if found.left_out else 0
