"""One rule makes the name of a file out of a text, and one gives names out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_lmeval.file_names import LONGEST, FileNames, safe_name
from tests.tables import each_row
from tests.test_imports_go_down import PACKAGE

# Besides the rule: names of test items, and of the folders that pytest makes for them.
MAKERS = {"file_names.py", "text.py", "plugin/private/items.py"}


@each_row(
    ("text", "dots", "name"),
    [
        ("my.eval", False, "my-eval"),
        ("gpt-4.1", True, "gpt-4.1"),
        ("../a b/c", True, "a-b-c"),
        ("...", True, "usual"),
        ("größe", False, "gr-e"),
        ("-x-", False, "x"),
        ("a" * 900, False, "a" * LONGEST),
    ],
)
def test_a_name_is_safe_and_bounded(text: str, dots: bool, name: str) -> None:
    assert name == safe_name(text, "usual", dots=dots)


def test_a_name_is_given_once_whatever_its_case() -> None:
    names = FileNames(["taken"])
    assert ["a", "A-2", "a-2-2", "TAKEN-2"] == [names.give(each) for each in ("a", "A", "a-2", "TAKEN")]
    assert ["", "b", "a"] == [names.take(each) for each in ("b", "B", "a")]


def test_no_other_module_makes_names_out_of_texts() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if any(_made(path.read_text()))}
    assert MAKERS == found


def test_another_maker_of_names_is_found() -> None:
    assert [True] * 2 == [any(_made(each)) for each in ("re.sub('[^a-z]+', '-', text)", "OTHERS.sub('_', text)")]
    assert [] == [*_made("re.sub('a', ' - ', text)")]


def _made(source: str) -> Iterator[ast.Call]:
    """Yield calls of ``sub`` that put a dash or a low line in the place of something."""
    for node in ast.walk(ast.parse(source)) if "sub(" in source else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".sub"):
            yield from (node for each in node.args[:2] if isinstance(each, ast.Constant) and each.value in ("-", "_"))
