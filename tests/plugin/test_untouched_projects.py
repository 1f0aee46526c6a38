"""Projects that happen to have the plugin installed notice nothing of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

# What a plugin costs and changes at the start is told by nothing but the command.
as_a_command = pytest.mark.command_line

HEAVY = ["pydantic", "jinja2", "yaml", "aiohttp", "numpy", "torch", "scipy", "asyncio", "multiprocessing.pool"]


@pytest.fixture
def foreign(project: Project) -> Project:
    """Provide a project with a tasks folder of its own: data, playbooks, code and plain tests."""
    project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    project.write("tasks/queue.jsonl", '{"job": 1}\nnot json\n')
    project.write("tasks/looks_alike.jsonl", json.dumps({"prompt": "p", "targets": ["t"], "metric": "exact_match"}))
    project.write("tasks/main.yaml", "- hosts: all\n  tasks: []\n")
    project.write("tasks/broken.yml", "{[")
    project.write("tasks/task_deploy.py", "raise RuntimeError('not for import')\n")
    project.write("data/rows.jsonl", "[1]\n")
    project.write("tests/test_plain.py", "def test_plain(): pass\n")
    project.write("tasks/test_inside.py", "def test_inside(): pass\n")
    return project


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("", marks=as_a_command),
        pytest.param("-n1", marks=[as_a_command, pytest.mark.again]),
        "tests tasks/test_inside.py",
        ". -v",
    ],
)
def test_a_run_without_an_adapter_collects_plain_tests_alone(foreign: Project, arguments: str) -> None:
    result = foreign.run_pytest(*arguments.split())
    assert 0 == result.ret
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    assert "leaderboard" not in text
    assert "lmeval:" not in text
    assert not (foreign.path / "reports").exists()


def test_failures_and_exit_codes_of_plain_runs_are_pytests_own(foreign: Project) -> None:
    foreign.write("tests/test_plain.py", "def test_plain(): assert 1 == 2\n")
    result = foreign.run_pytest()
    assert 1 == result.ret
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*test_plain.py:1: AssertionError"])
    assert 5 == foreign.run_pytest("-k", "nothing").ret
    assert 4 == foreign.run_pytest("nowhere").ret


MODULES = f"""
import sys

def test_heavy():
    assert [] == [name for name in {HEAVY} if name in sys.modules]

def test_ours():
    later = ("asking", "scoring", "leaderboard", "metrics", "sandbox", "adapters", "formats")
    names = tuple(f"pytest_lmeval.{{name}}" for name in later)
    assert [] == [name for name in sys.modules if name.startswith(names)]
"""


@as_a_command
def test_nothing_heavy_is_imported_where_no_task_is_collected(
    foreign: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.write("tests/test_plain.py", MODULES)
    # Other people's plugins import what they like: only this one is on.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    foreign.run_pytest("-p", "pytest_lmeval.plugin").assert_outcomes(passed=3)


@as_a_command
def test_the_plugin_can_be_left_out(foreign: Project) -> None:
    foreign.run_pytest("-p", "no:lmeval").assert_outcomes(passed=2)
    result = foreign.run_pytest("-p", "no:lmeval", "--lm-adapter=toy")
    assert 4 == result.ret


def test_an_adapter_does_not_turn_data_outside_the_task_folder_into_tasks(project: Project) -> None:
    project.small_tasks()
    project.write("data/rows.jsonl", "[1]\n")
    project.write("tests/fixtures/calls.jsonl", '{"prompt": 1}\n')
    project.write("tests/test_plain.py", "def test_plain(): pass\n")
    result = project.run()
    result.assert_outcomes(passed=5, failed=1)


@pytest.mark.again
def test_nothing_of_other_files_changes_beside_tasks(foreign: Project) -> None:
    before = sorted(path.name for path in (foreign.path / "tasks").iterdir())
    foreign.run_pytest("-p", "no:cacheprovider")
    after = sorted(path.name for path in (foreign.path / "tasks").iterdir() if path.name != "__pycache__")
    assert before == after


def test_strict_markers_and_configuration_accept_the_plugin(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\naddopts = --strict-markers --strict-config\nlm_adapter = model:Model\n")
    project.small_tasks()
    project.run_pytest("-m", "lmeval", "tasks/words.jsonl").assert_outcomes(passed=2)


LOADERS = """
import sys

import pytest_lmeval.types

def test_loaders():
    ours = {name: module for name, module in sys.modules.items() if name.startswith("pytest_lmeval")}
    rewritten = {name for name, module in ours.items() if type(module.__loader__).__name__ != "SourceFileLoader"}
    assert {"pytest_lmeval", "pytest_lmeval.plugin", "pytest_lmeval.own_modules"} == rewritten
"""


@as_a_command
def test_modules_of_the_package_are_imported_as_they_are(foreign: Project) -> None:
    foreign.write("tests/test_plain.py", LOADERS)
    # Twice in a process: the second time pytest has put its own way to import ahead.
    twice = "import pytest; print([pytest.main(['-q', 'tests/test_plain.py']) for _ in '12'])"
    result = foreign.pytester.run(sys.executable, "-c", twice)
    result.stdout.fnmatch_lines(["*ExitCode.OK*ExitCode.OK*"])
