"""The gate from the ini file: the command line wins, and nothing fails that it is not meant for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import MadeOnce, Project


def configure(project: Project, **options: str) -> None:
    ini = (project.path / "pytest.ini").read_text()
    project.write("pytest.ini", ini + "".join(f"lm_{name} = {value}\n" for name, value in options.items()))


@pytest.fixture
def compared(project: Project, made_once: MadeOnce) -> Project:
    project.small_tasks()
    configure(project, baseline="base.json")

    def fill(folder: Path) -> None:
        assert 0 == project.run("--lm-update-baseline").ret
        for name in ("base.json", "reports"):
            shutil.move(project.path / name, folder)

    shutil.copytree(made_once("ini-gate-compared", fill), project.path, dirs_exist_ok=True)
    return project


def test_a_whole_run_is_compared_with_the_baseline_of_the_ini_file(compared: Project) -> None:
    result = compared.run()
    gate = compared.board()["gate"]
    assert (0, "baseline", "base.json") == (result.ret, gate["mode"], gate["baseline"]["path"])
    told = "set by the ini file pytest.ini: baseline base.json"
    result.stdout.fnmatch_lines([told])
    assert told in (compared.path / "reports/leaderboard.md").read_text()


def test_the_path_is_that_from_the_ini_file(compared: Project) -> None:
    compared.pytester.chdir()
    (compared.path / "below").mkdir()
    result = compared.run(f"--rootdir={compared.path}", "-c", compared.path / "pytest.ini", compared.path / "tasks")
    assert 0 == result.ret
    assert "baseline" == compared.board()["gate"]["mode"]


@pytest.mark.parametrize(
    ("chosen", "passed", "reports"),
    [
        (["-k", "arith_1"], 1, "reports/selection"),
        (["tasks/words.jsonl::blue"], 1, "reports/selection"),
        (["--lm-limit=1"], 2, "reports"),
    ],
)
def test_a_part_is_gated_as_without_that_baseline_which_is_said(
    compared: Project, chosen: list[str], passed: int, reports: str
) -> None:
    result = compared.run(*chosen)
    result.assert_outcomes(passed=passed, deselected=4 if chosen[0] == "-k" else 0)
    assert "examples" == compared.board(reports)["gate"]["mode"]
    result.stdout.fnmatch_lines(["ini lm_baseline: not compared, * selects examples; *"])
    result = compared.run(*chosen, "--lm-baseline=base.json")
    assert "baseline" == compared.board(reports)["gate"]["mode"]


def test_a_part_fails_for_no_baseline_that_is_not_there(project: Project) -> None:
    project.small_tasks()
    configure(project, baseline="nowhere.json", gate="baseline")
    assert 0 == project.run("-k", "arith_1").ret
    result = project.run()
    assert 4 == result.ret
    result.stderr.fnmatch_lines(
        ["*ini lm_baseline: nowhere.json: no such file; to write it, run the version to compare with*"]
    )
    assert 1 == len(project.calls())


def test_runs_without_an_example_know_nothing_of_it(project: Project) -> None:
    configure(project, baseline="nowhere.json", gate="baseline", alpha="0.01", max_errors="3")
    project.write("test_plain.py", "def test_plain(): pass\n")
    project.run_pytest().assert_outcomes(passed=1)


def test_the_command_line_wins(project: Project) -> None:
    project.small_tasks()
    configure(project, gate="none", alpha="0.2", max_errors="50%")
    result = project.run()
    settings = project.board()["gate"]["settings"]
    assert (0, "none", 0.2) == (result.ret, settings["mode"], settings["alpha"])
    told = "set by the ini file pytest.ini: alpha 0.2, max-errors 50%, gate none (the default is examples)"
    result.stdout.fnmatch_lines([told])
    assert 1 == project.run("--lm-gate=examples", "--lm-alpha=0.1").ret
    settings = project.board()["gate"]["settings"]
    assert ("examples", 0.1) == (settings["mode"], settings["alpha"])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("gate", "exampels", "ini lm_gate: unknown gate 'exampels'; did you mean 'examples'?*"),
        ("pair_by", "name", "ini lm_pair_by: unknown pair_by 'name' (choices: content, id)*"),
        ("max_errors", "many", "ini lm_max_errors: expected a count such as 3*"),
    ],
)
def test_a_bad_value_is_a_usage_error(project: Project, name: str, value: str, message: str) -> None:
    project.small_tasks()
    configure(project, **{name: value})
    result = project.run()
    assert 4 == result.ret
    result.stderr.fnmatch_lines([f"*{message}"])
