"""Print lines and JSON safely, write files, and define options that commands share."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pytest_lmeval.arguments import level, share
from pytest_lmeval.compare.criteria import PAIR_BY, Criteria
from pytest_lmeval.compare.gate import GateSettings
from pytest_lmeval.compare.merged_gate import recorded_settings
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.report.terminal_text import Screen
from pytest_lmeval.text import printable

_DEFAULT = "default: as recorded, or "


def show(lines: Iterable[str]) -> None:
    """Print each of ``lines`` as one line, escaped for terminals and CI runners."""
    for line in lines:
        _print(printable(line, keep="\t"), sys.stdout)


def show_tables(lines_for: Callable[[Screen], Iterable[str]]) -> None:
    """Print lines with tables that fit the terminal's width, or ``COLUMNS``; without either, print whole tables."""
    is_limited = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    screen = Screen(shutil.get_terminal_size().columns if is_limited else None)
    show(lines_for(screen))
    if screen.cut:
        show([f"shortened to {screen.width} columns; in a pipe without COLUMNS, the tables are whole"])


def complain(message: str) -> None:
    """Print ``message``, which may have several lines, to standard error, escaped as in :func:`show`."""
    _print(printable(message), sys.stderr)


def show_json(value: Any) -> None:
    """Print a value as ASCII JSON with two-space indent; raise ValueError for infinities and NaN."""
    # CI runners treat lines with ``##`` as commands. In JSON, only strings contain it, and parsers decode the escape.
    print(json.dumps(value, indent=2, allow_nan=False).replace("##", "#\\u0023"))


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Turn an OSError into a UsageError that begins with ``place``."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None


def _print(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def add_format(parser: argparse.ArgumentParser, *choices: str) -> None:
    """Add ``--format``; the first choice is the default."""
    parser.add_argument("--format", choices=choices, default=choices[0], help=f"default {choices[0]}")


def add_criteria(parser: argparse._ActionsContainer, default: str = _DEFAULT) -> None:
    """Add the regression test's options; the help shows ``default`` before each default value."""
    parser.add_argument("--alpha", metavar="A", type=level, help=f"chance of a false alarm ({default}0.05)")
    parser.add_argument("--tolerance", metavar="D", type=share, help=f"a drop of up to D is no regression ({default}0)")
    parser.add_argument(
        "--strict", action="store_true", default=None, help="any example that passed and now fails is a regression"
    )


def add_pair_by(parser: argparse._ActionsContainer) -> None:
    """Add ``--pair-by``, which works like a run's ``--lm-pair-by``."""
    parser.add_argument(
        "--pair-by",
        choices=PAIR_BY,
        help="pair examples of equal id if all that decides the score is equal (content), or all but the prompt (id); "
        f"{_DEFAULT}content",
    )


def settings_of(options: argparse.Namespace, baseline: object, run: RunFile) -> GateSettings:
    """Return the settings for a gate that compares ``run`` with ``baseline``.

    An option that the user omits takes the value that the run recorded. The number of models that share alpha is always
    the recorded number.
    """
    recorded = recorded_settings(run)
    given = {name: getattr(options, name, None) for name in ("alpha", "tolerance", "strict", "pair_by")}
    known = {name: recorded[name] if value is None else value for name, value in given.items()}
    return GateSettings(mode="baseline", baseline=str(baseline), models=recorded["models"], **known)


def criteria_of(options: argparse.Namespace) -> Criteria:
    """Return the criteria set by the options of :func:`add_criteria`."""
    given = {name: getattr(options, name) for name in ("alpha", "tolerance", "strict")}
    return Criteria(**{name: value for name, value in given.items() if value is not None})
