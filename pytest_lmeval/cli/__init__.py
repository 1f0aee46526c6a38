"""The ``lmeval`` command, which works on task files, boards and ledgers without importing pytest.

Each command has a module with two functions. ``configure(parser)`` adds the command's arguments, and ``run(options)``
returns its exit code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from pytest_lmeval import __version__
from pytest_lmeval.errors import LmevalError, nearest
from pytest_lmeval.text import printable

COMMANDS = {
    "validate": "check task files against the rules of their dialect",
    "schema": "print a JSON Schema of a file that is read or written",
    "init": "write a model profile, a task or an eval, and a workflow for pull requests",
    "convert": "convert a published data set to task files",
    "import": "import the files of another tool",
    "run": "run pytest for CI; without a complete board, the exit code is not 0",
    "diff": "compare two runs: the verdict, and the examples that changed",
    "rank": "rank several models on the same examples",
    "history": "show the scores of a suite over its runs",
    "merge": "merge the ledgers of a run's shards",
    "plan": "compute the smallest drop that the suite detects, and the size to detect a smaller one",
    "calibrate": "estimate the gate's false-alarm rate from runs of one model",
    "baseline": "describe a baseline, or make another run the baseline",
    "report": "write the HTML report of a run",
    "publish": "write a run in the format of another tool",
    "tasks": "list the tasks of the project",
    "test": "try a few examples of a task, stage by stage, and store nothing",
    "add": "check declarative tasks and data sets, and copy them to the task folder",
    "export": "write a declarative task as one file",
    "delete": "delete a declarative task",
    "cache": "list, prune or clear the answers that --lm-cache stores",
}

_MODULES = {"import": "import_"}
"""Module names of commands that have the name of a Python keyword."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, or 2 for a usage error."""
    parser = _Parser(prog="lmeval", description="Language-model evals as tests.")
    parser.add_argument("--version", action="version", version=f"pytest-lmeval {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    arguments = list(sys.argv[1:] if argv is None else argv)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name in arguments:  # avoid importing other commands
            import_module(f"pytest_lmeval.cli.{_MODULES.get(name, name)}").configure(subparser)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        parser.error(f"no command {arguments[0]!r}{nearest(arguments[0], COMMANDS, 'there is')}")
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except LmevalError as error:
        from pytest_lmeval.cli.output import complain

        complain(f"lmeval {options.command}: {error}")
        return 2
    except BrokenPipeError:  # the reader, such as ``head``, has exited
        sys.stderr.close()
        return 0


class _Parser(argparse.ArgumentParser):
    """A parser that escapes its error messages for terminals and CI runners, because they contain arguments."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))
