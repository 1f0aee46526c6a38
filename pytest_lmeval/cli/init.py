"""``lmeval init [DIR]``: write the files that a project needs to run evals in pull requests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_lmeval.cli.ini import pytest_options
from pytest_lmeval.cli.output import show
from pytest_lmeval.errors import UsageError
from pytest_lmeval.starter.beginnings import Beginning, beginning
from pytest_lmeval.starter.columns import read_columns
from pytest_lmeval.starter.models import APPLICATION, KINDS, ChosenModel, check_module, of_application, parse_model
from pytest_lmeval.starter.workflow import comes_from_here
from pytest_lmeval.starter.write import StarterFile, write_starter


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="where (default: here)")
    parser.add_argument(
        "--model",
        metavar="SPEC",
        help=f"the model: {', '.join(KINDS)} (default: asked for, else toy; {APPLICATION} with --function)",
    )
    parser.add_argument("--base-url", metavar="URL", default="", help="the address of its server, kept in a profile")
    parser.add_argument("--from", dest="rows", metavar="FILE", type=Path, help="your questions: csv, jsonl or parquet")
    parser.add_argument("--question", metavar="COLUMN", default="", help="the column of the question in FILE")
    parser.add_argument("--answer", metavar="COLUMN", default="", help="the column of the answer in FILE")
    parser.add_argument("--function", action="store_true", help="begin with an eval function, for an application")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the starter files, list them, and print how to run them."""
    if options.model is None and not (options.rows or options.function or options.base_url):
        _ask(options)
    if options.rows is None and (options.question or options.answer):
        raise UsageError("--question and --answer name columns of a file: --from FILE")
    if options.base_url and options.model is None:
        raise UsageError("--base-url needs the name of the model: --model openai:NAME")
    model = parse_model(options.model or (APPLICATION if options.function else "toy"), options.base_url)
    model = of_application(model) if options.function else model
    check_module(model, options.folder, pytest_options([options.folder])[1].get("pythonpath", ()))
    rows = read_columns(options.rows, options.question, options.answer) if options.rows else None
    begin = beginning(options.folder, model, rows, function=options.function)
    changes = write_starter(options.folder, model, begin)
    show([*_reported(changes), *_notes(model, begin), *_next(options.folder, model, begin)])
    return 0


def _ask(options: argparse.Namespace) -> None:
    """In a terminal, ask for the model, and for a file of questions or an application to test."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    show(["Where is the model? " + ", ".join(KINDS)])
    options.model = _line("model [toy]: ") or "toy"
    if options.model.startswith("openai:"):
        options.base_url = _line("address of its server [OpenAI's]: ")
    show(["What is tested? A file of questions and answers (csv, jsonl, parquet), or an application in Python"])
    tested = _line("file, or 'function' [questions to begin with]: ")
    options.function = tested == "function"
    options.rows = Path(tested) if tested and not options.function else None


def _line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        return ""


def _reported(changes: Iterable[StarterFile]) -> Iterator[str]:
    for change in changes:
        done = "kept" if change.text is None else "wrote"
        yield f"{done} {change.path}" + (f": {change.note}" if change.note else "")


def _notes(model: ChosenModel, begin: Beginning) -> Iterator[str]:
    if model.named:
        yield f"{model.spec} asks the model that each request names: the example eval names {model.named}"
    if not (begin.has_ids or begin.imports):
        yield "two rows are equal; to compare prompts, add a column id and set lm_pair_by = id"
    if model.key:
        yield f"the key is read from {model.key}: set it here, and as a secret of the repository"
    if comes_from_here():
        yield "pytest-lmeval is installed from a local folder: edit evals.yml so that the workflow can install it"
    if model.folder is not None and not model.folder.is_dir():
        yield f"{model.folder} is not a folder: the first run will refuse {model.spec}"
    elif model.folder is not None:
        yield f"{model.folder} is on this machine: the workflow needs the model, too"
    if model.is_local:
        yield f"{model.base_url} is on this machine: the workflow needs an address that it can reach"


def _next(folder: Path, model: ChosenModel, begin: Beginning) -> Iterator[str]:
    place = "" if folder == Path() else f"cd {folder} && "
    paths = " ".join(begin.paths)
    yield f"now:  {place}pytest {paths}"
    yield f"then: pytest {paths} --lm-baseline=baseline.json --lm-update-baseline, and commit baseline.json"
