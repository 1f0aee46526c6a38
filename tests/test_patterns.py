"""Patterns that are no literals: none is searched for without a limit of time, and a short search needs no process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.metrics.parts.patterns import compiled
from tests.conftest import Project
from tests.tables import each_row

PACKAGE = Path(pytest_lmeval.__file__).parent
CALLS = {f"re.{call}" for call in "compile findall finditer fullmatch match search split sub subn".split()}
ESCAPED = "what comes from elsewhere is escaped, and there is one way to match it"
OWN = "words of this package"
CHECKED = "checked here, searched for by the metric"
WITHOUT_LIMIT = {
    "clients/answering.py: port": "a number",
    "compare/baseline.py: mark": OWN,
    "convert/ifeval.py: text": CHECKED,
    "cli/placing.py: stem": ESCAPED,
    "eval_framework/minerva.py: pattern": OWN,
    "filters/extraction.py: regex_pattern": "an attribute for filters that derive from this one; it uses the limit",
    "formats/files.py: name": ESCAPED,
    "harness/filters.py: word": OWN,
    "html/examples.py: pattern": ESCAPED,
    "http/options.py: adapter": OWN,
    "parts/patterns.py: text flags pattern flags": "the one place",
    "parts/tool_schema.py: pattern": CHECKED,
    "promptfoo/patterns.py: text": CHECKED,
    "python/claims.py: names": ESCAPED,
    "python/dialogue_task.py: either either": ESCAPED,
    "scoring/texts.py: letters": ESCAPED,
    "templates/placeholders.py: mark": OWN,
    "yaml/claims.py: role role": OWN,
}


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a pattern is made of, but for constants and for what is escaped."""
    if isinstance(node, ast.Name) and node.id != "map" and not node.id.isupper():
        yield node.id
    elif "re.escape" not in (ast.unparse(each) for each in ast.iter_child_nodes(node)):
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def _others(tree: ast.AST) -> Iterator[str]:
    """Yield the names that the patterns of a module's calls of ``re`` are made of, and imports that hide such calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex"):
            yield f"from {node.module}"
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name == "regex" or (each.name == "re" and each.asname))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS:
            named = [each.value for each in node.keywords if each.arg == "pattern"]
            yield from _names([*node.args, *named][0])


def test_every_pattern_that_is_no_literal_has_the_limit_or_a_reason() -> None:
    found = {path: list(_others(ast.parse(path.read_text("utf-8")))) for path in PACKAGE.rglob("*.py")}
    listed = {f"{path.parent.name}/{path.name}: {' '.join(names)}" for path, names in found.items() if names}
    assert {*WITHOUT_LIMIT} == listed
