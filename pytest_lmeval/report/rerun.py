"""The command that runs one example again, from what a run recorded of itself."""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.redaction import HIDDEN
from pytest_lmeval.text import node_name

# What decides the item's name, its prompt and its score, or whether pytest finds it and the model at all.
_WITH_VALUE = frozenset(
    {
        "--confcutdir",
        "--config-file",
        "--import-mode",
        "--lm-adapter",
        "--lm-adapter-arg",
        "--lm-config",
        "--lm-judge",
        "--lm-num-fewshot",
        "--lm-repeats",
        "--lm-sandbox",
        "--lm-subject",
        "--lm-think-tags",
        "--lm-threshold",
        "--override-ini",
        "--rootdir",
        "-c",
        "-o",
        "-p",
    }
)
_FLAGS = frozenset({"--allow-bad-tasks", "--lm-allow-bad-tasks"})


def rerun_command(manifest: Mapping[str, Any], path: str, item: str) -> str:
    """Return the command that runs the item called ``item`` of the file at ``path`` again, quoted for a shell.

    ``manifest`` is that of the run: its arguments, with secrets hidden, its ``rootdir`` and its ``report_dir``.
    Arguments with a hidden value are left out. The rerun gets a report dir of its own: the board and the ledger of the
    run are to stay.
    """
    return with_item(rerun_parts(manifest, path), item)


def with_item(parts: tuple[str, str], item: str) -> str:
    """Return the command that has these :func:`rerun_parts`, for the item called ``item``."""
    target, options = parts
    # Parameters are in brackets, which some shells take for a pattern.
    return f"pytest {shlex.quote(target + node_name(item))} {options}"


def rerun_parts(manifest: Mapping[str, Any], path: str) -> tuple[str, str]:
    """Return what :func:`rerun_command` puts together with the name of an item of the file at ``path``.

    That is what goes before it, which is to be quoted with it, and the options, which are quoted.
    """
    given = [argument for argument in _repeated(_argv(manifest)) if HIDDEN not in argument]
    given.append(f"--lm-report-dir={os.path.join(_text(manifest, 'report_dir', 'reports'), 'rerun')}")
    return f"{os.path.normpath(os.path.join(_text(manifest, 'rootdir', '.'), path))}::", shlex.join(given)


def command(manifest: Mapping[str, Any]) -> str:
    """Return the command of a run, quoted for a shell, with secrets hidden; empty where it is not known."""
    return shlex.join(_argv(manifest))


def _repeated(argv: Sequence[str]) -> Iterator[str]:
    rest = iter(argv)
    for argument in rest:
        # A long option and its value may be joined by an equals sign, a short one needs none.
        long = argument.startswith("--")
        name = argument.partition("=")[0] if long else argument[:2]
        if argument in _FLAGS:
            yield argument
        elif name in _WITH_VALUE:
            is_whole = argument != name
            value = argument.removeprefix(name) if is_whole else next(rest, None)
            if value is not None and not (name == "-p" and value.startswith("no:")):
                yield argument if is_whole else f"{name}{'=' if long else ''}{value}"


def _argv(manifest: Mapping[str, Any]) -> list[str]:
    given = manifest.get("argv")
    return [str(argument) for argument in given] if isinstance(given, list) else []


def _text(manifest: Mapping[str, Any], name: str, default: str) -> str:
    given = manifest.get(name)
    return given if isinstance(given, str) else default
