"""``lmeval delete KEY``: delete a declarative task from the task folder."""

from __future__ import annotations

import argparse

from pytest_lmeval.cli.output import show
from pytest_lmeval.cli.task_folder import Project, read_document


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the key of the task")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Delete the task's file, but keep included files and data, because other tasks may use them."""
    found = Project().declarative(options.key)
    document = read_document(found.path)
    included = sorted({each.path.name for each in document.includes.values()}) if document is not None else []
    found.path.unlink()
    show([f"deleted {found.path}", *([f"kept: {', '.join(included)}"] if included else [])])
    return 0
