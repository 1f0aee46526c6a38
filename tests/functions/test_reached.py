"""Which functions of a project's tests a function calls, and whether any of them may judge a result."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_lmeval.functions.source import TestSources, may_check, reached, roots
from tests.tables import each_row


@each_row(
    ("body", "may"),
    [
        ("assert x", True),
        ("raise ValueError", True),
        ("with raises(KeyError):\n        pass", True),
        ("with pytest.raises(KeyError), other:\n        pass", True),
        ("async with should.fail():\n        pass", True),
        ("self.assertEqual(1, 2)", True),
        ("expect(page).to_be(1)", True),
        ("_check(x)", True),
        ("case.verify()", True),
        ("pytest.fail('x')", True),
        ("judged(lm)", True),
        ("judged(x, lm=lm)", True),
        ("def inner():\n        assert 1", True),
        ("await answer(lm.base_url)", False),
        ("lm.score('x', 1)", False),
        ("with open('x'):\n        pass", False),
        ("checked = 1\n    print(checked)", False),
        ("return answer(x)", False),
    ],
)
def test_a_function_may_judge_by_what_stands_in_it(body: str, may: bool) -> None:
    assert may == may_check(ast.parse(f"async def test_x(lm):\n    {body}\n"))


def test_calls_begin_with_names() -> None:
    tree = ast.parse("def f(a):\n    a.b(c)\n    d[0].e()\n    g(h(1))\n    'x'.join(i)\n")
    assert {"a", "d", "g", "h"} == roots(tree)


FILES = {
    "tests_helpers": """
def check(answer):
    return inner(answer)

def inner(answer):
    return LIMIT < len(answer)

LIMIT = 1

class Right:
    def judge(self, answer):
        return self.more(answer)

    def more(self, answer):
        return answer

    @staticmethod
    def still(answer):
        return answer

right = Right()
""",
    "application": "def answer(question):\n    return question\n",
    "test_all": """
import tests_helpers
from application import answer
from tests_helpers import Right, check, right

def test_names(): check(answer("x"))
def test_module(): tests_helpers.check("x")
def test_instance(): right.judge("x")
def test_class(): Right().judge("x")
def test_static(): Right.still("x")
def test_application(): answer("x")
def test_itself(): test_itself()
def test_unknown(): nowhere("x"); print(1); [1].count(1)

class TestOne:
    def test_method(self): self.helper()
    def helper(self): check("x")
""",
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    folder = tmp_path_factory.mktemp("project")
    found: dict[str, ModuleType] = {}
    for name, text in FILES.items():
        path = folder / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        found[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    yield found
    for name in FILES:
        del sys.modules[name]


REACHED = {
    "test_names": {"check", "inner"},
    "test_module": {"check", "inner"},
    "test_instance": {"Right.judge", "Right.more"},
    "test_class": {"Right.judge", "Right.more", "Right.still"},
    "test_static": {"Right.still"},
    "test_application": set(),
    "test_itself": set(),
    "test_unknown": set(),
}


def _sources() -> TestSources:
    return TestSources(lambda path: "application" not in Path(path).name)


def test_what_a_function_calls_is_followed_in_the_tests_and_not_into_the_application(
    modules: dict[str, ModuleType],
) -> None:
    found = {name: set(reached(vars(modules["test_all"])[name], _sources())) for name in REACHED}
    assert REACHED == found
    method: Any = modules["test_all"].TestOne().test_method
    assert {"TestOne.helper", "check", "inner"} == set(reached(method, _sources()))


def test_a_file_that_cannot_be_read_has_no_functions(tmp_path: Path) -> None:
    code: Any = compile("def gone(): pass", str(tmp_path / "gone.py"), "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    assert [] == _sources().nodes_of(names["gone"])
    assert [] == _sources().nodes_of(len)
    assert [] == _sources().nodes_of(5)
