"""The house rules of tests: each folder has its line in the README, sources are files, and a helper is written once."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.conftest import Project

TESTS = Path(__file__).parent
MODULES = [path for path in sorted(TESTS.rglob("*.py")) if TESTS / "projects" not in path.parents]
LONGEST_SOURCE = 30


def test_the_readme_names_every_folder_and_no_other() -> None:
    table = (TESTS / "README.md").read_text("utf-8").partition("## I am adding")[2].partition("\n## ")[0]
    named = {name.split("/")[0] for name in re.findall(r"`([a-z_/]+)/(?:NAME/)?`", table)}
    rooms = set(re.findall(r"`plugin/([a-z_]+)/`", table))
    assert named == {path.name for path in TESTS.iterdir() if _has_files(path)}
    assert rooms == {path.name for path in (TESTS / "plugin").iterdir() if _has_files(path)}


def test_every_file_that_the_readme_names_exists() -> None:
    text = (TESTS / "README.md").read_text("utf-8")
    files = set(re.findall(r"`([a-z_]+\.py)`", text))
    assert {"fork_server.py", "tables.py"} <= files
    assert [] == [name for name in files if not (TESTS / name).exists()]
    methods = re.findall(r"`(?:project\.)?([a-z_]+)\((?:\"NAME\")?\)`", text)
    assert {"run", "board", "asked"} <= {*methods}
    assert [] == [name for name in methods if not hasattr(Project, name)]


def test_a_source_of_many_lines_is_a_file() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}: a source of {_height(node)} lines; move it to tests/projects/"
        for path in MODULES
        if _may_hold_a_long_text(path.read_text("utf-8"))  # to parse all takes two seconds
        for node in _texts(_tree(path))
        if _height(node) > LONGEST_SOURCE
    ]
    assert [] == found


def test_what_a_project_does_is_written_once() -> None:
    helpers = {name for name in vars(Project) if not name.startswith("_")}
    written = re.compile(rf"^def _*(?:{'|'.join(helpers)})\(", re.MULTILINE)
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {node.name} does what project.{node.name.lstrip('_')} does"
        for path in MODULES
        if written.search(path.read_text("utf-8"))  # to parse all takes two seconds
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in helpers and _takes_project(node)
    ]
    assert [] == found


def _may_hold_a_long_text(source: str) -> bool:
    """Tell whether a text in three quotes may be that long, or many lines that are texts follow each other."""
    marks = [source[: found.start()].count("\n") for found in re.finditer(r'"""', source)]
    in_a_row = rf"(?:^ *f?[rb]?\".*\n){{{LONGEST_SOURCE // 2}}}"
    return any(b - a >= LONGEST_SOURCE for a, b in pairwise(marks)) or bool(re.search(in_a_row, source, re.MULTILINE))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _has_files(path: Path) -> bool:
    return path.is_dir() and any(each.suffix != ".pyc" for each in path.rglob("*") if each.is_file())


def _texts(tree: ast.Module) -> list[ast.expr]:
    """Return the texts of a module but for docstrings."""
    nodes = [*ast.walk(tree)]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    return [node for node in nodes if isinstance(node, ast.JoinedStr | ast.Constant) and node not in docstrings]


def _height(node: ast.expr) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _takes_project(node: ast.FunctionDef) -> bool:
    arguments = node.args.args
    return bool(arguments) and isinstance(arguments[0].annotation, ast.Name) and arguments[0].annotation.id == "Project"
