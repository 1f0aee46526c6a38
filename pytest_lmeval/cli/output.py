"""What the commands have in common: the only way to print, and options of the same meaning."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from pytest_lmeval.arguments import level, share
from pytest_lmeval.compare.changes import Criteria
from pytest_lmeval.compare.gate import GateSettings
from pytest_lmeval.compare.pairing import PAIR_BY
from pytest_lmeval.text import printable


def show(lines: Iterable[str]) -> None:
    """Print each of ``lines`` as one line, with all spelled out that a terminal or a CI runner would obey."""
    for line in lines:
        _print(printable(line, keep="\t"), sys.stdout)


def complain(message: str) -> None:
    """Print ``message``, of one line or several, to standard error; otherwise as :func:`show`."""
    _print(printable(message), sys.stderr)


def show_json(value: Any) -> None:
    """Print the value as ASCII JSON with two-space indent; infinities and NaN are a ValueError."""
    # No line of it begins with a text's own characters; ``##`` stands in texts alone, and is the same to a JSON parser.
    print(json.dumps(value, indent=2, allow_nan=False).replace("##", "#\\u0023"))


def _print(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def add_format(parser: argparse.ArgumentParser, *choices: str) -> None:
    """Add ``--format``; the first of the choices is the default."""
    parser.add_argument("--format", choices=choices, default=choices[0], help=f"default {choices[0]}")


def add_criteria(parser: argparse.ArgumentParser) -> None:
    """Add the options of the regression test, of the same meaning as a run's."""
    parser.add_argument("--alpha", metavar="A", type=level, default=0.05, help="chance of a false alarm (default 0.05)")
    parser.add_argument(
        "--tolerance", metavar="D", type=share, default=0.0, help="a drop of up to D is no regression (default 0)"
    )
    parser.add_argument("--strict", action="store_true", help="any example that passed and now does not is one")


def add_pair_by(parser: argparse.ArgumentParser) -> None:
    """Add ``--pair-by``, of the same meaning as a run's ``--lm-pair-by``."""
    parser.add_argument(
        "--pair-by",
        choices=PAIR_BY,
        default="content",
        help="what pairs examples of one id: all that decides the score (default), or that without the prompt (id)",
    )


def settings_of(options: argparse.Namespace, baseline: object) -> GateSettings:
    """Return what the options of :func:`add_criteria` say, of a gate that compares with ``baseline``."""
    return GateSettings(
        mode="baseline",
        baseline=str(baseline),
        alpha=options.alpha,
        tolerance=options.tolerance,
        strict=options.strict,
        pair_by=getattr(options, "pair_by", "content"),
    )


def criteria_of(options: argparse.Namespace, *, exact: bool = False) -> Criteria:
    """Return what the options of :func:`add_criteria` say."""
    return Criteria(alpha=options.alpha, tolerance=options.tolerance, strict=options.strict, exact=exact)
