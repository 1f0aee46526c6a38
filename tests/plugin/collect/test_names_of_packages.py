"""Two packages of one repository with a task of one name: refused, with the ways out, one of which works."""

from __future__ import annotations

from tests.conftest import Project


def test_a_name_in_two_packages_is_refused_and_each_package_runs_by_itself(project: Project) -> None:
    for package in ("alpha", "beta"):
        project.task(f"{package}/tasks/faq.jsonl", project.record("a", "Say yes", "yes"))
    refused = project.run("alpha/tasks", "beta/tasks", "--lm-adapter=toy")
    assert 2 == refused.ret
    refused.stdout.fnmatch_lines(["*the task name 'faq' is taken by alpha/tasks/faq.jsonl; rename one of them, or*"])
    for package in ("alpha", "beta"):
        options = (f"--lm-baseline={package}/baseline.json", f"--lm-report-dir=reports/{package}", "--lm-gate=none")
        project.run(f"{package}/tasks", "--lm-adapter=toy", *options, "--lm-update-baseline")
        assert 0 == project.run(f"{package}/tasks", "--lm-adapter=toy", *options).ret
        assert ["faq"] == [row["task"] for row in project.board(f"reports/{package}")["tasks"]]
