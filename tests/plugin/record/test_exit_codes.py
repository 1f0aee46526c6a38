"""The exit code of a run: the first that holds of usage, bad tasks, incomplete, failed, nothing, passed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pytest_lmeval

if TYPE_CHECKING:
    from tests.conftest import Project

BAD = {"task_id": "broken"}
BROKEN_MODEL = "class Model:\n    def generate(self, prompts): raise OSError\n"
PASSING = "def test_plain(): pass\n"
FAILING = "def test_plain(): assert False\n"
RIGHT: dict[str, Any] = {"id": "right", "prompt": "say: x", "targets": ["x"], "metric": "exact_match"}
WRONG = {**RIGHT, "id": "wrong", "targets": ["y"]}

FILES: dict[str, dict[str, Any]] = {
    "right": {"tasks": [RIGHT]},
    "right and a passing test": {"tasks": [RIGHT], "test": PASSING},
    "right and a failing test": {"tasks": [RIGHT], "test": FAILING},
    "wrong": {"tasks": [RIGHT, WRONG]},
    "wrong and a passing test": {"tasks": [WRONG], "test": PASSING},
    "bad": {"tasks": [RIGHT, BAD]},
    "bad and a failing test": {"tasks": [RIGHT, BAD], "test": FAILING},
    "error": {"tasks": [RIGHT], "model": BROKEN_MODEL},
    "error and a failing test": {"tasks": [RIGHT], "model": BROKEN_MODEL, "test": FAILING},
    "error and bad": {"tasks": [RIGHT, BAD], "model": BROKEN_MODEL},
    "nothing": {"tasks": []},
}
CASES: list[tuple[str, str, int]] = [
    ("right", "", 0),
    ("right and a passing test", "", 0),
    ("right and a failing test", "", 1),
    ("wrong", "", 1),
    ("wrong", "--lm-gate=none", 0),
    ("wrong", "-k right", 0),
    ("wrong", "--lm-threshold=exact_match=0", 0),
    ("wrong and a passing test", "", 1),
    ("bad", "", 2),
    ("bad", "--lm-gate=none", 2),
    ("bad", "--continue-on-collection-errors", 2),
    ("bad and a failing test", "--continue-on-collection-errors", 2),
    ("bad", "--lm-no-such-option", 4),
    ("error", "", 3),
    ("error", "--lm-gate=none", 3),
    ("error", "--lm-max-errors=1", 3),
    ("error and a failing test", "", 3),
    ("error and bad", "", 2),
    ("error", "--lm-threshold=nobody=0.5", 4),
    ("nothing", "", 5),
    ("right", "-k nothing_like_it", 5),
]


# Of the cases where workers could make a difference, one of a kind.
UNDER_XDIST = [
    ("bad and a failing test", "--continue-on-collection-errors", 2),
    ("error and a failing test", "", 3),
    ("error and bad", "", 2),
]


def check(project: Project, kind: str, options: str, expected: int) -> None:
    files = FILES[kind]
    if files["tasks"]:
        project.task("tasks/t.jsonl", *files["tasks"])
    if "model" in files:
        project.write("model.py", files["model"])
    if "test" in files:
        project.write("test_plain.py", files["test"])
    result = project.run(*options.split())
    assert expected == result.ret
    if expected == 2:
        assert [] == project.calls()
        result.stdout.fnmatch_lines(["*tasks/t.jsonl:2: missing_required*"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(("kind", "options", "expected"), CASES)
def test_the_exit_code_says_how_the_run_ended(project: Project, kind: str, options: str, expected: int) -> None:
    check(project, kind, options, expected)


@pytest.mark.parametrize(("kind", "options", "expected"), UNDER_XDIST)
def test_the_exit_code_is_the_same_under_xdist(project: Project, kind: str, options: str, expected: int) -> None:
    check(project, kind, f"{options} -n2", expected)


# One place


def setters(source: str) -> set[str]:
    """Return the names of the functions in ``source`` that set pytest's exit code, or that of a SystemExit."""
    names = {"exitstatus", "returncode", "code"}
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in names
            is_own = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
            if (is_set and not is_own) or (isinstance(node, ast.Call) and "'exitstatus'" in ast.unparse(node)):
                found.add(function.name)
    return found


def test_one_function_sets_the_exit_code() -> None:
    sources = {
        path.name: path.read_text("utf-8") for path in Path(pytest_lmeval.__file__).parent.glob("plugin/**/*.py")
    }
    found = {name: functions for name, source in sources.items() if (functions := setters(source))}
    assert {"recorder.py": {"_set_exit_code"}} == found


@pytest.mark.parametrize(
    "line",
    [
        "session.exitstatus = 3",
        "self._session.exitstatus |= 1",
        "setattr(session, 'exitstatus', 3)",
        "error.code = 1",
        "session.exitstatus, other = 1, 2",
    ],
)
def test_another_function_that_sets_it_would_be_found(line: str) -> None:
    assert {"planted"} == setters(f"def planted():\n    {line}")
