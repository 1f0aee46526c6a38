"""``lmeval baseline show|accept``: describe a baseline, or accept another run as the baseline."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import add_format, settings_of, show, show_json, writing
from pytest_lmeval.compare.baseline import check_baseline, check_unchanged, encode_baseline, is_same, unfit
from pytest_lmeval.compare.difference import difference
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.records.runfile import RunFile, board_of, read_run

_FLIPS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    shown = actions.add_parser("show", help="print the model, date, commit, options and scores of a baseline")
    shown.add_argument("path", metavar="PATH", type=Path, help="the baseline: a leaderboard.json or a ledger.jsonl")
    add_format(shown, "text", "json")
    shown.set_defaults(run=_show)
    accepted = actions.add_parser("accept", help="write a finished run as the baseline, and print the flips")
    accepted.add_argument("path", metavar="LEDGER", type=Path, help="ledger.jsonl or leaderboard.json of the run")
    accepted.add_argument("-o", dest="output", metavar="PATH", type=Path, required=True, help="the baseline to write")
    accepted.add_argument("--limit", metavar="N", type=int, default=_FLIPS, help="flipped examples to print, each way")
    accepted.add_argument(
        "--prompts", action="store_true", help="keep the prompts, to compare them with --lm-pair-by=id"
    )
    accepted.set_defaults(run=_accept)


def _show(options: argparse.Namespace) -> int:
    found = read_run(options.path)
    check_baseline(found)
    board = board_of(found)
    if options.format == "json":
        show_json(_as_json(found, board))
    else:
        show(_lines(found, board))
    return 0


def _as_json(found: RunFile, board: Leaderboard) -> dict[str, Any]:
    return {
        "adapter": found.adapter,
        "adapter_options": dict(found.facts.adapter_options),
        "timestamp": found.timestamp,
        "manifest": dict(found.manifest),
        "digest": board.digest,
        "overall_score": board.overall_score,
        "scores": {row.task: row.score for row in board.tasks},
    }


def _lines(found: RunFile, board: Leaderboard) -> Iterator[str]:
    from pytest_lmeval.report.terminal_text import terminal_table

    options = " ".join(f"{name}={value!r}" for name, value in found.facts.adapter_options.items())
    facts = {
        "model": f"{found.adapter}{f' ({options})' if options else ''}",
        "date": found.timestamp,
        "commit": _commit(found.manifest),
        "versions": " ".join(f"{name} {number}" for name, number in found.manifest.get("versions", {}).items()),
        "digest": board.digest + ("" if found.agrees else " (changed by hand: the file states another)"),
    }
    yield from (f"{name:<9} {value}" for name, value in facts.items() if value)
    yield ""
    yield from terminal_table(board)


def _commit(manifest: Mapping[str, Any]) -> str:
    git = manifest.get("git") or {}
    return f"{git.get('commit', '')}{' with uncommitted changes' if git.get('dirty') else ''}"


def _accept(options: argparse.Namespace) -> int:
    found = read_run(options.path)
    if options.output.resolve() in (options.path.resolve(), options.path.with_name("ledger.jsonl").resolve()):
        raise UsageError(f"-o {options.output}: this file is the run itself; name another file for the baseline")
    check_baseline(found)
    check_unchanged(found)
    board = board_of(found)
    if reason := unfit(board):
        raise UsageError(f"{options.path}: {reason}; it cannot be a baseline")
    if options.output.is_file():
        before = read_run(options.output)
        if is_same(board, before.board or {}, prompts=options.prompts):
            show([f"{options.output}: nothing changed"])
            return 0
        from pytest_lmeval.report.difference_text import difference_lines

        changes = difference(before, found, settings_of(options, options.output, found), Path.cwd())
        show(difference_lines(changes, options.limit))
    with writing(f"-o {options.output}"):
        os.makedirs(options.output.parent, exist_ok=True)
        write_atomically(options.output, encode_baseline(board, prompts=options.prompts))
    show([f"baseline written to {options.output}: {found.adapter}, {found.timestamp}"])
    return 0
