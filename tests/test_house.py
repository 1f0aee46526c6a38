"""The size of the house: what one example passes through, large classes, and names that mean two things.

Each bound is the figure of the day on which it was set, and leaves ``SLACK`` above it. A change may lower a bound. One
that has to raise it says why beside it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.redaction import is_secret_name
from tests.bounds import SLACK
from tests.house_picture import PICTURE, draw

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_lmeval"
SCRIPT = ROOT / "benchmarks" / "one_example.py"
# Files, functions and switches between files of each way that benchmarks/one_example.py counts.
WAYS = {
    # Adapters are read by one module, which refuses members of a wrong type. Fields that are carried have a module.
    # One module adds up usages, and judges without prices are named. One rule tells texts from media in a prompt.
    "library": (33, 324, 187),
    # Columns are declared, and tables are fitted to the terminal: 40 functions more than without that. The page
    # shortens long labels, and words its verdict in a sentence.
    "pytest": (67, 808, 540),
    # The same, async fixtures by the item that asks, exceptions that nothing saw, ids of calls. Functions register
    # themselves, so that nothing below imports them. A few functions more: answers that are kept as they arrive,
    # and calls without ``with`` or ``await`` that are named by their line. One rule says which files are of a package.
    "function": (75, 981, 704),
}
# A thread that finds something waiting goes another way than one that waits: so many switches may be the machine's.
LUCK = 8
# Lines of a folder, those beneath it included: docs/decisions/harness.md says what they are.
# Functions that return other names, and values that only an aggregation uses, took 100 lines. Task folders that people
# share took 300: kinds of data files, methods of rows, several folders, imports beside a module, filters by name.
# Images of documents took 100, clearer docstrings 20.
LINES = {"formats/harness": 3340}
MOST_METHODS = 20
METHODS: dict[str, int] = {}
MOST_FIELDS = 20
FIELDS: dict[str, int] = {}
# Names of two or more classes.
TWICE = ""
# Where an example's metadata are read by key, the payload of a format or a metric: types.policy_of reads all else. Then
# where the name of a metric is compared with that of turns or of checks, whose tasks are of classes of their own.
PLACES = {
    r"example\.metadata(?:\[|\.get\()|\" in [\w.]*example\.metadata\b": 6,
    r"\b(?:dict|Mapping)\[str, Any\]": 1001,
    r"[!=]= (?:TURNS|CHECKS)\b|\b(?:TURNS|CHECKS) [!=]=|\bin \([^)]*\b(?:TURNS|CHECKS)\b": 3,
}


@cache
def classes() -> list[ast.ClassDef]:
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _methods(node: ast.ClassDef) -> int:
    return sum(isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) for member in node.body)


def _fields(node: ast.ClassDef) -> int:
    """Return the number of fields of a dataclass, of another class 0."""
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return 0
    return sum(
        isinstance(member, ast.AnnAssign) and "ClassVar" not in ast.unparse(member.annotation) for member in node.body
    )


def _output() -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--json"]
    # A variable that is named like a secret has the run look out for its value.
    plain = {name: value for name, value in os.environ.items() if not is_secret_name(name)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def output() -> dict[str, Any]:
    return _output()


@pytest.fixture(scope="module")
def counted(output: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return the figures of each way, with the fewest switches of up to four runs: a busy machine adds some."""
    ways = output["ways"]
    for _ in range(3):
        if all(ways[way]["switches"] <= most + LUCK for way, (_, _, most) in WAYS.items()):
            break
        again = _output()["ways"]
        ways = {way: min(of, again[way], key=itemgetter("switches")) for way, of in ways.items()}
    return {way: (len(of["files"]), of["functions"], of["switches"]) for way, of in ways.items()}


@pytest.mark.again
@pytest.mark.parametrize("way", WAYS)
def test_an_example_passes_through_no_more_than_it_did(way: str, counted: dict[str, tuple[int, int, int]]) -> None:
    files, functions, switches = counted[way]
    most_files, most_functions, most_switches = WAYS[way]
    assert files <= most_files * SLACK
    assert functions <= most_functions * SLACK
    assert switches <= most_switches * SLACK + LUCK


def test_contributing_has_the_figures_of_the_version() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f"The figures of version {version}:" in text, "python benchmarks/one_example.py --write"


@pytest.mark.parametrize("folder", LINES)
def test_a_folder_that_was_made_small_stays_so(folder: str) -> None:
    files = sorted((PACKAGE / folder).rglob("*.py"))
    assert LINES[folder] * SLACK >= sum(len(path.read_text("utf-8").splitlines()) for path in files)


def test_a_class_has_at_most_twenty_methods_and_a_large_one_no_more_than_it_had() -> None:
    found = {node.name: count for node in classes() if (count := _methods(node)) > MOST_METHODS}
    assert {} == {name: count for name, count in found.items() if count > METHODS.get(name, 0)}
    assert METHODS.keys() == found.keys(), "take out what became small"


def test_a_dataclass_has_at_most_twenty_fields_and_a_large_one_no_more_than_it_had() -> None:
    found = {node.name: count for node in classes() if (count := _fields(node)) > MOST_FIELDS}
    assert {} == {name: count for name, count in found.items() if count > FIELDS.get(name, 0)}
    assert FIELDS.keys() == found.keys(), "take out what became small"


@pytest.mark.parametrize("pattern", PLACES)
def test_what_is_read_once_is_read_in_few_places(pattern: str) -> None:
    found = sum(len(re.findall(pattern, path.read_text("utf-8"))) for path in PACKAGE.rglob("*.py"))
    assert PLACES[pattern] >= found


def test_no_further_class_takes_the_name_of_another() -> None:
    names = Counter(node.name for node in classes())
    assert {*TWICE.split()} == {name for name, count in names.items() if count > 1}


def test_the_picture_of_the_house_is_that_of_the_imports() -> None:
    assert draw() == PICTURE.read_text("utf-8"), "python -m tests.house_picture"
