"""``lmeval cache list|prune|clear DIR``: list or remove the answers in a ``--lm-cache`` folder."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pytest_lmeval.arguments import number
from pytest_lmeval.cli.output import show, show_tables
from pytest_lmeval.records.cache import AnswerStore, Stock
from pytest_lmeval.text import printable

_HEADINGS = ("adapter", "answers", "oldest", "newest")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add(actions, "list", _list, "show the number and age of each adapter's answers")
    prune = _add(actions, "prune", _prune, "remove old answers, and all answers of earlier versions")
    prune.add_argument("--older-than", metavar="DAYS", type=number(0), required=True, help="remove older answers")
    _add(actions, "clear", lambda options: _removed(options.folder, AnswerStore.clear), "remove all answers")


def _add(actions: argparse._SubParsersAction, name: str, run: _Run, summary: str) -> argparse.ArgumentParser:  # type: ignore[type-arg]  # argparse's own class, generic in stubs only
    parser: argparse.ArgumentParser = actions.add_parser(name, help=summary)
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder that --lm-cache names")
    parser.set_defaults(run=run)
    return parser


def _list(options: argparse.Namespace) -> int:
    with closing(AnswerStore(options.folder, must_exist=True)) as store:
        rows = [_row(stock) for stock in store.stock()]
    show_tables(lambda screen: screen.cells(_HEADINGS, rows, drop=("oldest",)) if rows else ["no answers"])
    return 0


def _prune(options: argparse.Namespace) -> int:
    return _removed(options.folder, lambda store: store.prune(options.older_than))


def _removed(folder: Path, remove: Callable[[AnswerStore], int]) -> int:
    with closing(AnswerStore(folder, must_exist=True)) as store:
        removed, left = remove(store), len(store)
    show([f"{removed} answer(s) removed, {left} left"])
    return 0


def _row(stock: Stock) -> list[str]:
    name = printable(stock.adapter, keep="") or "(unnamed)"
    return [name, str(stock.answers), _day(stock.oldest), _day(stock.newest)]


def _day(asked: float | None) -> str:
    return "" if asked is None else time.strftime("%Y-%m-%d", time.gmtime(asked))


_Run = Callable[[argparse.Namespace], int]
