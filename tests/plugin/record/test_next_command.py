"""The last screen of a run names the next command, until the user knows it."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import Project

KEEP = "the same command with --lm-baseline=baseline.json --lm-update-baseline"
UPDATE = ("--lm-baseline=baseline.json", "--lm-update-baseline")


def _next(result: pytest.RunResult) -> list[str]:
    """Return the lines between the path of the page and pytest's own end."""
    after = result.outlines[result.outlines.index("HTML report: reports/report.html") + 1 :]
    return [line for line in after if line.startswith("to ")]


def test_the_way_from_a_first_run_to_a_drop_is_named_command_by_command(project: Project) -> None:
    project.task("tasks/t.jsonl", *(project.record(f"e{number}", "x") for number in range(30)))
    first = project.run("tasks")
    assert [f"to compare later runs with this one: {KEEP}"] == _next(first)
    assert [] == _next(project.run("tasks"))
    kept = project.run("tasks", *UPDATE)
    said = "to compare with it: commit baseline.json, then the same command without --lm-update-baseline"
    assert [said] == _next(kept)
    project.edit("model.py", '"say: ")[2]', '"say: ")[2] + "!"')
    dropped = project.run("tasks", "--lm-baseline=baseline.json")
    named = _next(dropped)
    assert ["to see the answers then and now: lmeval diff baseline.json reports/leaderboard.json"] == named
    shown = project.lmeval(*named[0].rpartition("lmeval ")[2].split())
    assert "  old (1.0000):\n    x\n  new (0.0000):\n    x!\n" in shown.stdout.str()


@pytest.mark.again
@pytest.mark.parametrize("options", [("-q",), ("-k", "e1"), ("--lm-limit=1",), ("--lm-shard=1/2",)])
def test_a_quiet_run_and_a_part_of_the_examples_name_no_next_command(
    project: Project, options: tuple[str, ...]
) -> None:
    project.task("tasks/t.jsonl", project.record("e1", "x"), project.record("e2", "x"))
    assert [] == [line for line in project.run("tasks", *options).outlines if line.startswith("to ")]


@pytest.mark.again
def test_the_log_of_ci_names_no_next_command(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.prompts("say: x", target="y")
    assert [f"to fail only if a later run is worse: {KEEP}"] == _next(project.run("tasks"))
    shutil.rmtree(project.path / "reports")
    monkeypatch.setenv("CI", "true")
    assert [] == _next(project.run("tasks"))
