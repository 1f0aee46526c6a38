"""Tests that lack something are skipped, and fail where the run was told not to lack it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import needs
from tests.conftest import NEEDLESS, RunModule, left_out
from tests.reference import conftest as reference
from tests.sources import PROJECTS

TESTS = Path(__file__).parent
PROJECT = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))["project"]
MARKED = "slow tests run with --all"
Run = Callable[[str], subprocess.CompletedProcess[str]]
BROWSER_TEST = "tests/report/html/test_page.py::test_the_overview_begins_with_verdict_and_scores"


@pytest.fixture
def run_without_chromium(run_module: RunModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("LMEVAL_TEST_CHROMIUM", raising=False)
    arguments = ["-pno:cacheprovider", *[f"-pno:{name}" for name in NEEDLESS], "--again", BROWSER_TEST]

    def run(required: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path), needs.VARIABLE: required}
        return run_module(TESTS.parent, "pytest", *arguments, **environment)

    return run


def test_a_test_that_lacks_something_is_skipped_and_listed_in_one_line(run_without_chromium: Run) -> None:
    done = run_without_chromium("torch, data")

    assert 0 == done.returncode, done.stdout
    expected = "left out: 1 test(s): needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM (1)"
    assert f"{expected}; {MARKED}" in done.stdout.splitlines()


def test_a_test_that_lacks_what_the_run_requires_fails(run_without_chromium: Run) -> None:
    done = run_without_chromium("chromium")

    assert 1 == done.returncode, done.stdout
    assert (
        "needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM; LMEVAL_TESTS_REQUIRE names chromium"
        in done.stdout
    )
    assert f"left out: 0 test(s); {MARKED}" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["slow", "again"]),
        ({"again": True}, ["slow"]),
        ({"markexpr": "again and not slow"}, ["slow"]),
        ({"not_passed_in": Path("there")}, ["slow"]),
        ({"all": True}, []),
    ],
)
def test_marked_tests_run_where_they_are_asked_for(options: dict[str, Any], expected: list[str]) -> None:
    given = {"all": False, "again": False, "markexpr": "", "not_passed_in": None, **options}
    config = cast("pytest.Config", SimpleNamespace(getoption=given.__getitem__))

    assert expected == list(left_out(config))


HOOKS = """
from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_terminal_summary
"""
SUITE = """
import os, pytest

def test_sound(): pass
def test_broken(): assert not os.environ.get("BROKEN")
def test_lacking(): os.environ.get("HAS_IT") or pytest.skip("lacks it")
@pytest.mark.again
def test_in_workers(): pass
@pytest.mark.slow
def test_long(): pass
"""


def test_what_passed_in_a_checkout_when_it_was_last_run_is_left_out_elsewhere(
    run_module: RunModule, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").touch()

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        options = [*[f"-pno:{name}" for name in NEEDLESS], *arguments]
        return run_module(tmp_path, "pytest", *options, PYTHONPATH=str(TESTS.parent), **environment)

    def left() -> set[str]:
        return {*re.findall(r"::(test_\w+)", run("--collect-only", "-q", "--not-passed-in=.").stdout)}

    refused = run("--not-passed-in=.", "-n2")
    assert (4, True) == (refused.returncode, "no test has passed in .: run ./check there" in refused.stderr)
    assert 0 == run().returncode
    assert {"test_lacking", "test_in_workers"} == left()
    assert 0 == run("-k", "lacking", HAS_IT="1").returncode
    assert {"test_in_workers"} == left()
    assert 1 == run(BROKEN="1").returncode
    assert {"test_broken", "test_lacking", "test_in_workers"} == left()


def test_a_kind_that_no_test_asks_for_is_a_usage_error(run_without_chromium: Run) -> None:
    done = run_without_chromium("chrome")

    assert 4 == done.returncode
    assert (
        "LMEVAL_TESTS_REQUIRE: unknown chrome; "
        "choices: chromium, clients, data, docs, git, packages, ray, server, torch, trio" in done.stderr
    )


def test_a_missing_module_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs no_such_module"):
        needs.module("no_such_module")
    with pytest.raises(pytest.skip.Exception, match="needs no_such_module"):
        needs.installed("no_such_module")
    monkeypatch.setenv(needs.VARIABLE, "packages")
    with pytest.raises(pytest.fail.Exception, match="needs no_such_module; LMEVAL_TESTS_REQUIRE names packages"):
        needs.module("no_such_module")


def test_a_module_of_tests_that_imports_a_library_that_is_not_there_is_skipped_or_fails(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(reference, "find_spec", lambda name: None)
    folder = TESTS / "reference"
    lacking = reference.pytest_pycollect_makemodule(folder / "test_f1.py", request.session)

    assert reference.pytest_pycollect_makemodule(folder / "test_bounds.py", request.session) is None
    assert lacking is not None
    monkeypatch.delenv(needs.VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match=re.escape("needs pip install -e '.[test-libraries]'")):
        lacking.collect()
    monkeypatch.setenv(needs.VARIABLE, "packages")
    with pytest.raises(pytest.fail.Exception, match="names packages"):
        lacking.collect()


def test_the_packages_that_tests_may_lack_are_those_of_the_extras() -> None:
    extras = PROJECT["optional-dependencies"]
    # Programs, and what no test runs without.
    others = {"hypothesis", "mypy", "ruff"}

    assert needs.LIBRARIES == _imported_as(extras["test-libraries"])
    assert needs.CLIENTS == _imported_as(extras["test-clients"])
    assert needs.OPTIONAL == needs.LIBRARIES | _imported_as(extras["test"]) - others
    assert not {*extras["test"]} & {*extras["test-libraries"]}


def test_a_project_that_imports_another_package_stands_in_the_table() -> None:
    found = {}
    for path in PROJECTS.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
        name = path.relative_to(PROJECTS)
        own = {each.stem for each in (PROJECTS / name.parts[0]).rglob("*")}
        known = own | sys.stdlib_module_names | _imported_as(PROJECT["dependencies"]) | {"pytest_lmeval"}
        if others := {each.partition(".")[0] for each in names} - known:
            found[name.as_posix()] = tuple(sorted(others))

    assert needs.PACKAGES == found


def test_a_test_that_takes_a_file_of_a_project_is_skipped_without_what_that_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    monkeypatch.delenv(needs.VARIABLE, raising=False)

    for paths in (["eval_clients"], ["eval_clients/"], ["eval_ends/model.py", "eval_ends/tests/test_cancelled.py"]):
        with pytest.raises(pytest.skip.Exception, match="test-libraries"):
            needs.of_projects(*paths)
    needs.of_projects("eval_ends/model.py", "seen")


def test_a_test_file_that_has_an_import_of_such_a_package_says_that_it_needs_it() -> None:
    named = re.compile(rf"^ *(?:import|from) ({'|'.join(needs.OPTIONAL)})\b", re.MULTILINE)
    # The modules of reference/ are skipped by its conftest.py.
    files = [path for path in TESTS.rglob("*.py") if path.parts[len(TESTS.parts)] not in ("projects", "reference")]
    tests = {path: path.read_text("utf-8") for path in files if path.name.startswith(("test_", "conftest"))}

    assert [] == [
        f"{path.relative_to(TESTS)}: {name}"
        for path, source in tests.items()
        for name in {*named.findall(source)}
        # Modules of harness tasks get a substitute for datasets.
        if not (name == "datasets" and path.name.startswith("test_harness"))
        if not re.search(rf'\b(?:module|installed)\("{name}\b', source)
    ]


def _imported_as(requirements: list[str]) -> set[str]:
    """Return the names that packages are imported by."""
    unlike = {"pyyaml": "yaml", "pytest_json_report": "pytest_jsonreport", "pytest_xdist": "xdist"}
    unlike |= {"scikit_learn": "sklearn", "opentelemetry_sdk": "opentelemetry", "openai_agents": "agents"}
    names = [re.split(r"[^\w-]", line)[0].removesuffix("-slim").replace("-", "_") for line in requirements]
    return {unlike.get(name, name) for name in names}


def test_a_missing_data_set_skips_and_where_it_is_required_the_test_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(needs.VARIABLE, raising=False)
    assert (True,) == needs.needs_file(tmp_path / "absent").args
    assert (False,) == needs.needs_file(tmp_path).args
    monkeypatch.setenv(needs.VARIABLE, "data")
    assert (False,) == needs.needs_file(tmp_path / "absent").args


def test_whatever_may_be_missing_is_asked_for_in_one_place() -> None:
    around = re.compile(r"\bimportorskip\b|skipif\(not .*exists\(\)|\bshared/data\b")
    elsewhere = set(TESTS.rglob("*.py")) - {Path(__file__), Path(needs.__file__)}

    assert [] == [path.name for path in sorted(elsewhere) if around.search(path.read_text("utf-8"))]
