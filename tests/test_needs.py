"""Tests that lack something are skipped, and fail where the run was told not to lack it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import needs
from tests.conftest import NEEDLESS, RunModule, left_out
from tests.reference import conftest as reference

TESTS = Path(__file__).parent
MARKED = "slow tests run with --all; others once more, in other ways, with --again"
Run = Callable[[str], subprocess.CompletedProcess[str]]
BROWSER_TEST = "tests/report/html/test_page.py::test_the_overview_begins_with_verdict_and_reasons"


@pytest.fixture
def run_without_chromium(run_module: RunModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("LMEVAL_TEST_CHROMIUM", raising=False)
    arguments = ["-pno:cacheprovider", *[f"-pno:{name}" for name in NEEDLESS], BROWSER_TEST]

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
        ({"all": True}, []),
    ],
)
def test_marked_tests_run_where_they_are_asked_for(options: dict[str, Any], expected: list[str]) -> None:
    given = {"all": False, "again": False, "markexpr": "", **options}
    config = cast("pytest.Config", SimpleNamespace(getoption=given.__getitem__))

    assert expected == list(left_out(config))


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


def test_the_libraries_are_those_of_their_extra() -> None:
    extras = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = {re.split(r"[^\w-]", line)[0].removesuffix("-slim").replace("-", "_") for line in extras["test-libraries"]}

    assert needs.LIBRARIES == {"sklearn" if name == "scikit_learn" else name for name in names}
    assert not {*extras["test"]} & {*extras["test-libraries"]}


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
