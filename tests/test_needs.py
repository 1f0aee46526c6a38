"""Tests that lack something are skipped, and fail where the run was told not to lack it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import needs
from tests.conftest import NEEDLESS, left_out

TESTS = Path(__file__).parent
MARKED = "slow tests run with --all; more of them in worker processes with --workers"
BROWSER_TEST = "tests/report/html/test_page.py::test_the_overview_begins_with_verdict_and_reasons"


def _run_without_chromium(tmp_path: Path, required: str) -> subprocess.CompletedProcess[str]:
    surroundings = {name: value for name, value in os.environ.items() if name != "LMEVAL_TEST_CHROMIUM"}
    environment = {**surroundings, "PATH": str(tmp_path), needs.VARIABLE: required}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-pno:cacheprovider",
        *[f"-pno:{name}" for name in NEEDLESS],
        BROWSER_TEST,
    ]
    return subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)


def test_a_test_that_lacks_something_is_skipped_and_listed_in_one_line(tmp_path: Path) -> None:
    done = _run_without_chromium(tmp_path, required="torch, data")

    assert 0 == done.returncode, done.stdout
    expected = "left out: 1 test(s): needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM (1)"
    assert f"{expected}; {MARKED}" in done.stdout.splitlines()


def test_a_test_that_lacks_what_the_run_requires_fails(tmp_path: Path) -> None:
    done = _run_without_chromium(tmp_path, required="chromium")

    assert 1 == done.returncode, done.stdout
    assert (
        "needs Chromium, on the path or named by LMEVAL_TEST_CHROMIUM; LMEVAL_TESTS_REQUIRE names chromium"
        in done.stdout
    )
    assert f"left out: 0 test(s); {MARKED}" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["slow", "workers"]),
        ({"workers": True}, ["slow"]),
        ({"markexpr": "workers and not slow"}, ["slow"]),
        ({"all": True}, []),
    ],
)
def test_marked_tests_run_where_they_are_asked_for(options: dict[str, Any], expected: list[str]) -> None:
    given = {"all": False, "workers": False, "markexpr": "", **options}
    config = cast("pytest.Config", SimpleNamespace(getoption=given.__getitem__))

    assert expected == list(left_out(config))


def test_a_kind_that_no_test_asks_for_is_a_usage_error(tmp_path: Path) -> None:
    done = _run_without_chromium(tmp_path, required="chrome")

    assert 4 == done.returncode
    assert "LMEVAL_TESTS_REQUIRE: unknown chrome; choices: chromium, data, git, packages, server, torch" in done.stderr


def test_a_missing_module_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs no_such_module"):
        needs.module("no_such_module")
    with pytest.raises(pytest.skip.Exception, match="needs no_such_module"):
        needs.installed("no_such_module")
    monkeypatch.setenv(needs.VARIABLE, "packages")
    with pytest.raises(pytest.fail.Exception, match="needs no_such_module; LMEVAL_TESTS_REQUIRE names packages"):
        needs.module("no_such_module")


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
