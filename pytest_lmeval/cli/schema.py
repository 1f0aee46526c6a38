"""``lmeval schema NAME``: print the JSON Schema of a file, for editors and other programs."""

from __future__ import annotations

import argparse

from pytest_lmeval.cli.output import show_json
from pytest_lmeval.schemas import load_schema, schema_names


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(schema_names())}")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the schema."""
    show_json(load_schema(options.name))
    return 0
