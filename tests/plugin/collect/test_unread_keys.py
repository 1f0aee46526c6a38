"""A key of a record that nothing reads, and that is nearly one that is read, does not pass unsaid."""

from __future__ import annotations

import json

import pytest

from tests.conftest import BOTH, Project


@pytest.mark.parametrize("processes", BOTH)
def test_metadata_of_spec_records_are_free_and_every_report_says_what_looks_misspelt(
    project: Project, processes: str
) -> None:
    metadata = {"must_pas": True, "treshold": 0.1, "author": "me"}
    project.task("tasks/t.jsonl", *[project.spec(id, "x", metadata=metadata) for id in "ab"])
    result = project.run(processes)
    assert 0 == result.ret
    says = "tasks/t.jsonl:1: nothing reads metadata.must_pas (in 2 records); did you mean 'must_pass'?"
    assert 1 == result.outlines.count(says)
    assert says in project.board()["remarks"]
    assert says.replace("_", "") in (project.path / "reports/leaderboard.md").read_text().replace("\\", "").replace(
        "_", ""
    )
    assert "did you mean" in (project.path / "reports/report.html").read_text()
    done = project.lmeval("validate", "tasks")
    assert 0 == done.ret
    done.stdout.fnmatch_lines([says.replace("1: ", "1: warning: ").replace("(", "[(]")])


def test_compact_records_and_eval_functions_are_refused(project: Project) -> None:
    record = {"id": "a", "prompt": "p", "targets": ["x"], "metric": "exact_match", "extras": {"must_pas": True}}
    project.write("tasks/t.jsonl", json.dumps(record) + "\n")
    result = project.run()
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*t.jsonl:1: unknown_field extras.must_pas: nothing reads the key*'must_pass'*"])
    project.write(
        "test_e.py",
        "from pytest_lmeval import eval_task\n"
        "@eval_task('e', metadata={'quarantin': {}})\n"
        "def test_e(lm): lm.score('s', 1.0)\n",
    )
    result = project.run("test_e.py")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*eval_task('e'): metadata.quarantin: nothing reads the key*'quarantine'*"])
