"""What the package offers by name, and what it never imports to do so."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pytest_lmeval
from tests.bounds import SLACK

if TYPE_CHECKING:
    from tests.conftest import Project

PACKAGE = Path(pytest_lmeval.__file__).parent
SHIPPED = Path(__file__).parents[1] / "tasks"
HEAVY = {"pytest", "_pytest", "pluggy", "xdist", "pydantic", "jinja2", "yaml", "aiohttp", "numpy", "torch"}
MODULES = sorted(
    ".".join(("pytest_lmeval", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
)
# What runs as a program of its own is never imported: main modules, and what the sandbox starts.
IMPORTABLE = [
    name for name in MODULES if not name.startswith("pytest_lmeval.sandbox.inside") and "__main__" not in name
]


def _type_checking_names() -> dict[str, str]:
    """Return ``{name: module}`` of the imports that only type checkers see."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            # Without "as", type checkers treat the name as private.
            assert alias.name == alias.asname
            names[alias.name] = str(node.module)
    return names


def _homes() -> dict[str, str]:
    return {name: f"pytest_lmeval.{module}" for module, names in pytest_lmeval._HOMES.items() for name in names}


def _imported_by(program: str) -> set[str]:
    """Return the top-level modules that ``program`` leaves imported, in a process of its own."""
    command = [sys.executable, "-c", f"{program}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


# Names


def test_all_is_sorted_and_says_each_name_once() -> None:
    assert sorted(set(pytest_lmeval.__all__)) == pytest_lmeval.__all__


@pytest.mark.parametrize("name", pytest_lmeval.__all__)
def test_every_public_name_is_the_one_of_the_module_it_lives_in(name: str) -> None:
    home = importlib.import_module(_homes()[name])
    assert getattr(pytest_lmeval, name) is getattr(home, name)
    assert name in getattr(home, "__all__", [name])


def test_type_checkers_see_the_names_that_are_there() -> None:
    assert _homes() == _type_checking_names()
    assert sorted(_homes()) == pytest_lmeval.__all__


def test_the_documented_names_are_public() -> None:
    documented = {
        *("validate_task", "validate_file", "load_tasks", "run_task", "run_leaderboard", "write_leaderboard"),
        *("render", "post_process", "execute_code"),
    }
    assert documented <= set(pytest_lmeval.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pytest_lmeval' has no attribute 'run_tusk'"):
        # mypy tells this name, too: it would report an ignored error that there is not.
        pytest_lmeval.run_tusk  # type: ignore[attr-defined]  # noqa: B018  # the lookup is the test


def test_dir_lists_the_public_names() -> None:
    assert pytest_lmeval.__all__ == dir(pytest_lmeval)


def test_the_version_is_the_distribution_s() -> None:
    from importlib.metadata import version

    assert version("pytest-lmeval") == pytest_lmeval.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", pytest_lmeval.__version__)


def test_every_module_has_what_it_says_it_has() -> None:
    said = {name: getattr(importlib.import_module(name), "__all__", []) for name in IMPORTABLE}
    assert {} == {name: public for name, public in said.items() if len(public) != len(set(public))}
    assert [] == [
        f"{name}.{each}" for name, public in said.items() for each in public if not hasattr(sys.modules[name], each)
    ]


# Imports


def test_importing_the_package_imports_nothing_of_it() -> None:
    program = (
        "import sys, pytest_lmeval\nassert not [name for name in sys.modules if name.startswith('pytest_lmeval.')]"
    )
    assert HEAVY.isdisjoint(_imported_by(program))


def test_no_public_name_imports_pytest_or_anything_heavy() -> None:
    """Each process has the names of one module alone and is a fork of one that has imported the package alone."""
    program = """
import json, os, sys, pytest_lmeval
for names in pytest_lmeval._HOMES.values():
    if os.fork() == 0:
        for name in names:
            getattr(pytest_lmeval, name)
        print(json.dumps([sorted(names), sorted(sys.modules)]), flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {tuple(names): modules for names, modules in map(json.loads, done.stdout.splitlines())}
    assert pytest_lmeval.__all__ == sorted(name for names in imported for name in names)
    heavy = {names: HEAVY & {module.partition(".")[0] for module in modules} for names, modules in imported.items()}
    assert {} == {names: found for names, found in heavy.items() if found}


def test_using_the_package_imports_neither_pytest_nor_anything_heavy(tmp_path: Path) -> None:
    program = f"""
import pytest_lmeval as lm
tasks = lm.load_tasks({str(SHIPPED)!r})
board = lm.run_leaderboard(tasks, lm.make_adapter("toy", lm.default_registry(), {{}}))
lm.write_leaderboard(board, {str(tmp_path / "board.json")!r}, include_per_example=True)
lm.run_task(tasks[0], lm.ReplayAdapter({str(tmp_path / "board.json")!r}))
lm.validate_file(tasks[0].path)
lm.post_process("extract_letter", lm.render(tasks[0].examples[0]))
"""
    assert set() == HEAVY & _imported_by(program)
    assert (tmp_path / "board.json").exists()


@pytest.mark.again
def test_importing_every_module_changes_nothing_around_it() -> None:
    program = f"""
import importlib, os, sys, threading
around = lambda: (dict(os.environ), os.getcwd(), sys.path[:], sys.argv[:], threading.active_count(), os.listdir())
before = around()
for name in {IMPORTABLE}:
    importlib.import_module(name)
assert before == around()
"""
    _imported_by(program)


# Files and lines: each is compiled in every run where bytecode may not be written. A change may lower a bound.
# 170 lines more: functions that heed nothing, requests that are given up at the end, rounding, ids beside parameters.
# 100 and 500 lines more: what a task lacks, the limit on cost, reports moved aside, async fixtures, lost exceptions.
# One file more each: private names of pytest are in three files, and the plugin has a room "common".
# 70 lines more: the columns of all tables are declared in one module, which each run imports.
# 420 and 800 lines more: fields that a server expects back, answers kept at arrival; functions also have options of
# requests, requests outside of examples, recorded tools, variants and questions about calls.
# 140 lines more: images, audio and files in prompts, of which a run without them imports the type and the questions
# whether there are any; a function also names them in the last steps of a failure, 20 lines.
# 30 and 80 lines more: judges without prices, failed attempts, calls of lm without effect, shared servers of tools.
# 50 lines more: placeholders of media name format and size, and the page asks where the files of a task are.
# Clearer docstrings took 90 and 110 lines.
RECORDS = (127, 19_970)
FUNCTION = (141, 23_570)
UNUSED = {
    *("adapters.bigram", "asking.limits", "asking.rounds", "compare.changes", "compare.pairing", "data.rows"),
    *("formats.python", "formats.spec", "formats.tools", "formats.turns", "formats.yaml", "leaderboard.classes"),
    *("leaderboard.explained", "leaderboard.judged", "metrics.parts.tool_schema", "plugin.asking.failure"),
    *("plugin.common.baseline", "plugin.record.progress", "records.recorded", "records.recording", "records.runfile"),
    *("records.stored", "report.html.before", "report.html.comparison_page", "run.resume", "sandbox"),
}
OF_RECORDS = {"formats.declarative", "judging.question", "formats.loglikelihood", "functions", "plugin.evals"}
OF_FUNCTIONS = {"formats.compact", "formats.jsonl"}


@pytest.mark.command_line
def test_a_run_of_plain_records_that_pass_imports_what_it_uses(project: Project) -> None:
    project.task("tasks/t.jsonl", project.record("a", "yes"), project.record("b", "no"))
    project.write("conftest.py", IMPORTED)
    assert 0 == project.run().ret
    imported, lines = _imported_in(project)
    assert set() == {f"pytest_lmeval.{name}" for name in UNUSED | OF_RECORDS} & imported
    assert len(imported) <= RECORDS[0] * SLACK
    assert lines <= RECORDS[1] * SLACK


@pytest.mark.command_line
def test_a_run_of_an_eval_function_imports_what_it_uses(project: Project) -> None:
    project.write("test_one.py", ONE)
    project.write("conftest.py", IMPORTED)
    assert 0 == project.run().ret
    imported, lines = _imported_in(project)
    assert set() == {f"pytest_lmeval.{name}" for name in UNUSED | OF_FUNCTIONS} & imported
    assert len(imported) <= FUNCTION[0] * SLACK
    assert lines <= FUNCTION[1] * SLACK


def _imported_in(project: Project) -> tuple[set[str], int]:
    """Return the modules of the package that a run had imported when it ended, and how many lines they have."""
    pairs = [line.split(" ", 1) for line in (project.path / "imported.txt").read_text().splitlines()]
    return {name for name, _ in pairs}, sum(len(Path(path).read_text("utf-8").splitlines()) for _, path in pairs)


ONE = """
from pytest_lmeval import eval_task


@eval_task("same", data=[{"id": "a"}])
async def test_same(row, lm):
    answer = await lm.ask("say: yes")
    lm.score("same", answer.text == "yes")
"""
IMPORTED = """
import sys


def pytest_unconfigure():
    with open("imported.txt", "w") as file:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "pytest_lmeval":
                file.write(f"{name} {module.__file__}\\n")
"""
