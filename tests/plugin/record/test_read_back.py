"""A run that is read back from its ledger counts what the run itself counted."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval import read_run
from pytest_lmeval.cli import main
from pytest_lmeval.records.runfile import board_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project

# Their examples have the same ids.
TWO_TASKS = """
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask

class Words(BaseTask[str]):
    NAME = "Words"
    DATASET_PATH = "words.csv"
    SAMPLE_SPLIT = "test"
    METRICS = [AccuracyCompletion]
    SUBJECTS = ["general"]

    def _get_instruction_text(self, item):
        return f"say: {item['said']}"

    def _get_ground_truth(self, item):
        return item["said"]

class Others(Words):
    NAME = "Others"
"""
# The result of an example is heard before its teardown.
DEADLY = """
import os

def pytest_runtest_teardown(item):
    if item.name == "{name}":
        os._exit(7)
"""


@pytest.fixture(params=["tasks of one file", "ids that make the same name"])
def deadly(request: pytest.FixtureRequest, project: Project) -> Project:
    """Provide a project in which a worker dies after an example was scored."""
    if request.param == "tasks of one file":
        project.write("tasks/task_two.py", TWO_TASKS)
        project.write("tasks/words.csv", "said\na\nb\nc\n")
        name = "Others.ex-1"
    else:
        project.task("tasks/t.jsonl", *[project.record(id, "x") for id in ("a b", "a-b", "a_b", "c")])
        name = "a-b-2"
    project.write("conftest.py", DEADLY.format(name=name))
    return project


def _page(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    overview: dict[str, Any] = json.loads(found[1])
    return overview


def test_an_example_whose_worker_died_after_it_was_scored_is_missing_until_a_run_completes_the_ledger(
    deadly: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 3 == deadly.run("-n2", "--lm-batch-size=1").ret
    counts = deadly.board()["counts"]
    assert (1, counts["collected"] - 1) == (counts["missing"], counts["scored"])
    ledger = deadly.path / "reports/ledger.jsonl"
    run = read_run(ledger)
    assert (True, counts) == (run.agrees, dict(board_of(run).counts))
    page = deadly.path / "page.html"
    main(["report", str(ledger), "-o", str(page)])
    assert counts == _page(page)["board"]["counts"]
    assert counts == _page(deadly.path / "reports/report.html")["board"]["counts"]
    assert counts["scored"] == sum(tally["total"] for tally in _page(page)["examples"])
    capsys.readouterr()
    main(["diff", str(ledger), str(ledger), "--format=json"])
    assert counts["scored"] == json.loads(capsys.readouterr().out)["comparison"]["paired"]
    # A run that completes such a ledger counts every example.
    (deadly.path / "conftest.py").unlink()
    assert 0 == deadly.run("--lm-resume").ret
    run = read_run(deadly.path / "reports/ledger.jsonl")
    assert (True, True, 0) == (run.agrees, run.complete, board_of(run).counts["missing"])
    assert deadly.board()["counts"] == dict(board_of(run).counts)
