"""The columns of tables: each is declared once, for every place that shows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest_lmeval
from pytest_lmeval.report import tables
from pytest_lmeval.report.tables import FORMATS, PAGE, Column

PACKAGE = Path(pytest_lmeval.__file__).parent
PARTS = PACKAGE / "report" / "html" / "page"
ALL = [each for table in vars(tables).values() if isinstance(table, tuple) for each in table if type(each) is Column]
# Other words are names of fields, too.
TITLES = {title for each in ALL for title in (each.title, each.on_page) if " " in title}


def test_a_heading_is_declared_in_one_module() -> None:
    sources = [*PACKAGE.glob("report/**/*.py"), PACKAGE / "cli" / "rank.py", PACKAGE / "cli" / "history.py"]
    found = {
        (path.name, node.value)
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value in TITLES
    }
    assert {("tables.py", title) for title in TITLES} == found


def test_no_script_of_the_page_has_a_heading_of_a_declared_table() -> None:
    quoted = {f'"{title.lower()}"' for title in TITLES}
    scripts = {path.name: path.read_text("ascii").replace("\\u00a0", " ").lower() for path in PARTS.glob("*.js")}
    # The facts of a task have names, too.
    del scripts["summary.js"]
    assert [] == [(name, each) for name, script in scripts.items() for each in quoted if each in script]


def test_terminal_markdown_and_page_know_the_same_formats() -> None:
    table = re.search(r"const FORMATS = \{(.*?)\n\};", (PARTS / "tables.js").read_text("ascii"), re.DOTALL)
    assert table is not None
    assert {*FORMATS} == {*re.findall(r'^  "?([a-z0-9 ]+)"?[:,]', table[1], re.MULTILINE)}
    assert {each.format for each in ALL} == {*FORMATS, "plot"}
    assert {PAGE} == {each.where for each in ALL if each.format == "plot"}
