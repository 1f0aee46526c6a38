"""The columns of tables: each is declared once, for every place that shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import pytest_lmeval
from pytest_lmeval.report import tables
from pytest_lmeval.report.tables import CHANGES, FORMATS, METRICS, MODELS, PAGE, SCORES, TEXT, Column
from tests.tables import each_row

PACKAGE = Path(pytest_lmeval.__file__).parent
PARTS = PACKAGE / "report" / "html" / "page"
ALL = [each for table in vars(tables).values() if isinstance(table, tuple) for each in table if type(each) is Column]
# Other words are names of fields, too.
TITLES = {title for each in ALL for title in (each.title, each.on_page) if " " in title}


def test_a_heading_is_in_no_other_module_and_no_script_of_the_page() -> None:
    # The facts of a task have names, too; calibrate and plan have tables of their own.
    sources = [*PACKAGE.glob("report/**/*.py"), *(PACKAGE / "cli" / f"{name}.py" for name in ("rank", "history"))]
    scripts = [path for path in PARTS.glob("*.js") if path.name != "summary.js"]
    texts = {path.name: path.read_text("utf-8").replace("\\u00a0", " ").lower() for path in (*sources, *scripts)}
    found = {(name, title) for name, text in texts.items() for title in TITLES if f'"{title.lower()}"' in text}
    assert {("tables.py", title) for title in TITLES} == found


def test_terminal_markdown_and_page_know_the_same_formats() -> None:
    table = re.search(r"const FORMATS = \{(.*?)\n\};", (PARTS / "tables.js").read_text("ascii"), re.DOTALL)
    assert table is not None
    assert {*FORMATS} == {*re.findall(r'^  "?([a-z0-9 ]+)"?[:,]', table[1], re.MULTILINE)}
    assert {each.format for each in ALL} == {*FORMATS, "plot"}
    assert {PAGE} == {each.where for each in ALL if each.format == "plot"}


@each_row(
    ("table", "columns"),
    [("scores", SCORES), ("against the baseline", CHANGES), ("models", MODELS), ("groups", METRICS)],
)
def test_the_docs_state_the_order_in_which_a_narrow_terminal_drops_columns(
    table: str, columns: Sequence[Column]
) -> None:
    dropped = sorted((each for each in columns if each.drop and TEXT in each.where), key=attrgetter("drop"))
    stated = ", ".join(f"`{each.title}`" for each in dropped)
    assert f"| {table} | {stated} |" in (PACKAGE.parent / "docs" / "leaderboard.md").read_text("utf-8")
