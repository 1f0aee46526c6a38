"""Words: plain ones, one for each meaning. What a reader would have to translate is refused, in names and sentences."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.prose import RATES, begins_with_a_question, of_module, of_page, texts_by_line

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pytest_lmeval"
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changelog").glob("*.md")),
]
NAMES = {
    "alike": "equal, same",
    "dearest": "max_cost",
    "fate": "status, outcome",
    "fates": "statuses, outcomes",
    "heard": "received",
    "hopeless": "unrecoverable",
    "judgement": "rules",
    "luck": "seed, noise",
    "purse": "budget",
    "told": "reported",
    "underway": "journal, in_flight",
    "untold": "unknown",
}
"""Parts of names that are refused, each with what to write."""
WORDS = {
    r"\b(?:is|are|was) (?-i:none)\b(?! of)": "is no ..., does not exist",
    r"\b(?:is|be) to be had\b|\bbe had of\b": "is available",
    r"\balike (?:long|before)\b": "of equal length, in the same way",
    r"\bbefall": "happen to",
    r"\bfates?\b": "status, outcome",
    r"\bheard\b": "received, reported",
    r"\blived to\b": "crashed before",
    r"\bpurse\b": "budget",
    r"\bstands?\b(?![- ]alone)": "is, is in, represents",
    r"\bstood\b": "was",
    r"\b(?:tells|told)\b(?! apart)": "says, reports",
    r"\btook its leave\b": "exited",
    r"\buntold\b": "unknown",
}
"""What is refused in messages, docstrings, comments and docs, each with what to write."""
ANY_WORD = re.compile("|".join(WORDS), re.IGNORECASE)


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name


def refused_names(source: str) -> list[str]:
    """Return ``line: name (what to write)`` for each name in ``source`` that has a refused part."""
    found = []
    for line, name in _names(ast.parse(source)):
        parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
        found += [f"{line}: {name} ({NAMES[part]})" for part in parts if part in NAMES]
    return sorted(set(found))


def refused_words(text: str) -> list[str]:
    """Return ``line: word (what to write)`` for each refused word in ``text``."""
    # Nearly every text has none.
    if not ANY_WORD.search(text):
        return []
    return [
        f"{number}: {match[0]} ({plain})"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern, plain in WORDS.items()
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_names_in_the_package_are_plain() -> None:
    found = {path.relative_to(ROOT).as_posix(): refused_names(path.read_text("utf-8")) for path in MODULES}
    assert {} == {path: names for path, names in found.items() if names}


def test_messages_docstrings_and_comments_are_plain() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): refused_words(texts_by_line(path.read_text("utf-8"))) for path in MODULES
    }
    assert {} == {path: words for path, words in found.items() if words}


def test_docs_are_plain() -> None:
    found = {path.relative_to(ROOT).as_posix(): refused_words(path.read_text("utf-8")) for path in PAGES}
    assert {} == {path: words for path, words in found.items() if words}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class Heard: ...", ["1: Heard (received)"]),
        ("def f(a, own_purse): ...", ["1: own_purse (budget)"]),
        ("x.is_told = 1", ["1: is_told (reported)"]),
        ("received = heard()", []),
    ],
)
def test_a_refused_name_is_found(source: str, found: list[str]) -> None:
    assert found == refused_names(source)


def test_a_refused_word_is_found_in_strings_and_comments_only() -> None:
    source = 'stands = 1\nx = "it is told"\n# The board\n"""It\nstands\n"""\n'
    assert ["2: told (says, reports)", "5: stands (is, is in, represents)"] == refused_words(texts_by_line(source))


# Per 1,000 words. A change may lower a bound; none may rise.
MOST = {
    "docstrings": {"where": 0.2, "question": 0.2, "nobody": 0.1, "of": 0.1},
    "comments": {"where": 0.2, "question": 0.2, "nobody": 0.1, "of": 0.1},
    # Prompts to judges ask questions, and "where" in SQL is no condition.
    "messages": {"where": 0.5, "question": 0.6, "nobody": 0.1, "of": 0.0},
    "docs": {"where": 1.0, "question": 0.5, "nobody": 0.3, "of": 0.1},
}
MOST_MODULES_WITH_A_QUESTION = 0


def test_what_a_reader_has_to_translate_becomes_no_more() -> None:
    words: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    modules = [path.read_text("utf-8") for path in MODULES]
    pages = [of_page(path.read_text("utf-8")) for path in PAGES if "reference" not in path.parts]
    for each in (*(each for source in modules for each in of_module(source)), *pages):
        words[each.kind] += each.words
        found.update({(each.kind, rate): each.count(rate) for rate in RATES})
    rates = {(kind, rate): 1000 * count / words[kind] for (kind, rate), count in found.items()}

    assert {} == {each: round(rate, 2) for each, rate in rates.items() if rate > MOST[each[0]][each[1]]}
    assert sum(map(begins_with_a_question, modules)) <= MOST_MODULES_WITH_A_QUESTION * len(modules)


def test_each_construction_is_counted_in_its_kind_of_text() -> None:
    comment, message = "# Of two comments\n# it is one, where it fits.\n", "Nobody knows: what is it?"
    source = f'"""Whether it is."""\n{comment}raise ValueError("{message}")\n'
    page = of_page("# Where\n\nWhat is [a link](where.md)? Of those\n\n```sh\nwhere\n```\n\n| where |\n")

    counts = {each.kind: [each.count(rate) for rate in RATES] for each in (*of_module(source), page)}
    assert {
        "docstrings": [0, 1, 0, 0],
        "comments": [1, 0, 0, 1],
        "messages": [0, 0, 1, 0],
        "docs": [0, 1, 0, 1],
    } == counts
    assert begins_with_a_question(source)
    assert not begins_with_a_question('"""Reads what is there."""')
