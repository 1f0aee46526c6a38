"""``lmeval export KEY [-o FILE]``: write a declarative task as one file, with includes expanded."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_lmeval.atomic import link_target, write_atomically
from pytest_lmeval.cli.output import show, writing
from pytest_lmeval.cli.task_folder import Project, read_document, written_out
from pytest_lmeval.errors import UsageError
from pytest_lmeval.text import holds_command


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the key of the task")
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="a .yaml file (default: standard output)")
    parser.add_argument("--force", action="store_true", help="replace the file of another task, too")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the task; without ``--force``, raise UsageError rather than replace a file that lacks the task's key."""
    found = Project().declarative(options.key)
    text = written_out(found.path.read_text(encoding="utf-8-sig"), found.path)
    if options.output is None:
        if holds_command(text):
            # Escaping the text would change the task.
            reason = "contains text that CI runners interpret as a command; write it to a file with -o FILE"
            raise UsageError(f"{found.path}: {reason}")
        sys.stdout.write(text)
        return 0
    output = link_target(options.output)
    if output.suffix != ".yaml":
        raise UsageError(f"-o {output}: a task is a file that ends in .yaml")
    there = read_document(output)
    is_own = there is not None and there.get("key") == found.key
    if output.exists() and not (is_own or options.force):
        fix = "choose another name, or replace the file with --force"
        raise UsageError(f"-o {output}: another task's file has this name; {fix}")
    with writing(f"-o {output}"):
        write_atomically(output, text.encode("utf-8"))
    show([f"wrote {output}"])
    return 0
