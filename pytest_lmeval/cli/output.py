"""What the commands have in common: the only way to print, and options of the same meaning."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from pytest_lmeval.arguments import level, share
from pytest_lmeval.compare.criteria import PAIR_BY, Criteria
from pytest_lmeval.compare.gate import GateSettings
from pytest_lmeval.compare.merged_gate import recorded_settings
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.text import printable

_DEFAULT = "default: as the new run recorded it, or "


def show(lines: Iterable[str]) -> None:
    """Print each of ``lines`` as one line, with all spelled out that a terminal or a CI runner would obey."""
    for line in lines:
        _print(printable(line, keep="\t"), sys.stdout)


def complain(message: str) -> None:
    """Print ``message``, of one line or several, to standard error; otherwise as :func:`show`."""
    _print(printable(message), sys.stderr)


def show_json(value: Any) -> None:
    """Print the value as ASCII JSON with two-space indent; infinities and NaN are a ValueError."""
    # No line of it begins with a text's own characters; only texts have ``##``, and a JSON parser reads the same.
    print(json.dumps(value, indent=2, allow_nan=False).replace("##", "#\\u0023"))


def _print(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)


def add_format(parser: argparse.ArgumentParser, *choices: str) -> None:
    """Add ``--format``; the first of the choices is the default."""
    parser.add_argument("--format", choices=choices, default=choices[0], help=f"default {choices[0]}")


def add_criteria(parser: argparse._ActionsContainer, default: str = _DEFAULT) -> None:
    """Add the options of the regression test, of a run's meaning; ``default`` says where defaults are from."""
    parser.add_argument("--alpha", metavar="A", type=level, help=f"chance of a false alarm ({default}0.05)")
    parser.add_argument("--tolerance", metavar="D", type=share, help=f"a drop of up to D is no regression ({default}0)")
    parser.add_argument(
        "--strict", action="store_true", default=None, help="any example that passed and now does not is one"
    )


def add_pair_by(parser: argparse._ActionsContainer, default: str = _DEFAULT) -> None:
    """Add ``--pair-by``, of the same meaning as a run's ``--lm-pair-by``."""
    parser.add_argument(
        "--pair-by",
        choices=PAIR_BY,
        help="what pairs examples of one id: all that decides the score (content), or that without the prompt (id); "
        f"{default}content",
    )


def settings_of(options: argparse.Namespace, baseline: object, run: RunFile) -> GateSettings:
    """Return the settings of a gate that compares ``run`` with ``baseline``.

    What the options of :func:`add_criteria` and :func:`add_pair_by` leave open is as the run recorded it, and so is how
    many models shared its alpha.
    """
    recorded = recorded_settings(run)
    given = {name: getattr(options, name, None) for name in ("alpha", "tolerance", "strict", "pair_by")}
    known = {name: recorded[name] if value is None else value for name, value in given.items()}
    return GateSettings(mode="baseline", baseline=str(baseline), models=recorded["models"], **known)


def criteria_of(options: argparse.Namespace) -> Criteria:
    """Return what the options of :func:`add_criteria` say, of no run in particular."""
    given = {name: getattr(options, name) for name in ("alpha", "tolerance", "strict")}
    return Criteria(**{name: value for name, value in given.items() if value is not None})
