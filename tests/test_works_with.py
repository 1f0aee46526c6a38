"""The page of what runs were tried beside: it has the rows that the script tries."""

from __future__ import annotations

import re

from tests import editors
from tests.works_with import MARKS, PAGE, ROWS


def test_the_page_has_each_plugin_that_is_tried_with_a_version() -> None:
    shown = PAGE.read_text("utf-8").partition(MARKS[0])[2].partition(MARKS[1])[0]
    rows = re.findall(r"^\| ([a-z-]+) \| [\d.]+ \| (.*?) \| (.*?) ?\|$", shown, re.MULTILINE)
    expected = [(row.packages, " ".join(f"`{each}`" for each in row.options), row.note) for row in ROWS]
    assert expected == [(name, options.strip(), note) for name, options, note in rows]


def test_the_page_has_each_editor_that_is_tried_with_a_version() -> None:
    shown = PAGE.read_text("utf-8").partition(editors.MARKS[0])[2].partition(editors.MARKS[1])[0]
    expected = ["VS Code, extension Python", "PyCharm, by teamcity-messages"]
    assert expected == re.findall(r"^\| ([^|]+) \| \d[\w.-]+ \| ", shown, re.MULTILINE)
