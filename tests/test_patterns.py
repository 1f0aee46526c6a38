"""Patterns that are no literals: none is searched for without a limit of time, and a short search needs no process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import pytest_lmeval
from pytest_lmeval.metrics.parts.patterns import compiled

PACKAGE = Path(pytest_lmeval.__file__).parent
ESCAPED = "what comes from elsewhere is escaped, and there is one way to match it"
OWN = "words of this package"
CHECKED = "checked here, searched for by the metric"
WITHOUT_LIMIT = {
    "clients/answering.py: port": "a number",
    "compare/baseline.py: mark": OWN,
    "convert/ifeval.py: text": CHECKED,
    "eval_framework/minerva.py: pattern": OWN,
    "harness/substitutes.py: regex_pattern": "an attribute for filters that derive from this one; it uses the limit",
    "formats/files.py: name": ESCAPED,
    "http/faults.py: name": OWN,
    "http/options.py: adapter": OWN,
    "parts/patterns.py: text pattern": "the one place",
    "promptfoo/checks.py: is_template text text": CHECKED,
    "python/claims.py: names": ESCAPED,
    "python/dialogue_task.py: either either": ESCAPED,
    "scoring/texts.py: letters": ESCAPED,
    "templates/placeholders.py: mark": OWN,
    "yaml/claims.py: before names": OWN,
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
        if isinstance(node, ast.Call) and re.fullmatch(r"re\.(?!escape)\w+", ast.unparse(node.func)):
            named = [each.value for each in node.keywords if each.arg == "pattern"]
            yield from _names([*node.args, *named][0])


def test_every_pattern_that_is_no_literal_has_the_limit_or_a_reason() -> None:
    found = {path: list(_others(ast.parse(path.read_text("utf-8")))) for path in PACKAGE.rglob("*.py")}
    listed = {f"{path.parent.name}/{path.name}: {' '.join(names)}" for path, names in found.items() if names}
    assert {*WITHOUT_LIMIT} == listed


LONGEST = {
    r"#### (\-?[0-9\.\,]+)": 100_000,
    "(-?[$0-9.,]{2,})|(-?[0-9]+)": 100_000,
    "(-?[0-9]+([ .,][0-9.,]+)?)": 500,
    "(?s).*#### ": 1_000,
    "(?=(a|an) )b?": 100_000,
    "a*a*b": 100,
    "(?:(?=a*b).)*": 1_000,
    "(a|a)*b": 10,
    "(a+)+$": 4,
    "(a*)*$": 4,
}
"""In texts of so many characters a search takes few steps, whatever they hold; in ten times as many it may not."""


def test_texts_in_which_a_search_takes_few_steps_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    worker = SimpleNamespace(ask=lambda job, pattern, flags, method, text: asked.append(len(text)))
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    for pattern, longest in LONGEST.items():
        for length in (longest, 10 * longest):
            compiled(pattern).search("b" * length)
    assert [10 * longest for longest in LONGEST.values()] == asked


def test_the_process_finds_what_is_found_here() -> None:
    here, there = compiled("(a)(b)?"), compiled(r"(a)(b)?(?!\1)", re.IGNORECASE)
    found = here.findall(["ab Ac", "b"])
    assert [[("a", "b")], []] == found
    assert [[["a", "b"], ["A", ""]], []] == there.findall(["ab Ac", "b"])
    assert (True, False) == (there.search("xA"), there.search("b"))
    assert r"<b>x<>y" == there.sub(r"<\2>", "abxAy") != there.sub(r"<\2>", "abxAy", 1) == "<b>xAy"


def test_what_is_no_pattern_is_said() -> None:
    for text, reason in {"(": "missing )", "a{1,99999999999}": "too large"}.items():
        with pytest.raises(ValueError, match=re.escape(reason)):
            compiled(text)
