"""What a run took is said alike on the terminal, in Markdown and in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

MODEL = """
from pytest_lmeval import Completion
from pytest_lmeval.errors import TransientError

RETRY_AFTER = 0.01

class Model:
    name = "stub.v1"
    asked = 0

    def generate_requests(self, requests):
        self.asked += 1
        if self.asked == 1:
            raise TransientError("busy", RETRY_AFTER)
        tokens = {"prompt_tokens": 1000, "completion_tokens": 5, "cost": 0.25}
        return [Completion(each.text.rpartition("say: ")[2], **tokens) for each in requests]
"""


def test_tokens_cost_retries_and_time_are_said(project: Project) -> None:
    project.write("model.py", MODEL)
    project.task("tasks/t.jsonl", project.record("a", "x"), project.record("b", "y"))
    result = project.run("-n1")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(
        ["took * s, 2,000 prompt and 10 completion tokens, cost 0.5000, 2 retries; per example: *"]
    )
    (line,) = [line for line in result.outlines if line.startswith("took ")]
    assert line in (project.path / "reports/leaderboard.md").read_text().splitlines()
    board = project.board()
    assert {"prompt_tokens": 2000, "completion_tokens": 10, "cost": 0.5, "retries": 2} == board["usage"]
    assert 0 <= board["manifest"]["wall_s"] < 300
    # Of each example, with the controller's and the workers' share.
    assert 0 < board["manifest"]["harness_ms"] < 30_000
    assert board["spent"]["model_ms"] == board["tasks"][0]["spent"]["model_ms"] > 0
    assert line.endswith(", cost 0.2500")


def test_the_time_of_other_tests_is_not_called_the_harness_s(project: Project) -> None:
    project.write("model.py", MODEL)
    project.task("tasks/t.jsonl", project.record("a", "x"))
    project.write("test_other.py", "def test_other():\n    pass\n")
    result = project.run("tasks", "test_other.py")
    result.stdout.fnmatch_lines(["took * 1 retries; per example: model * ms, cost 0.2500"])
    assert "harness_ms" not in project.board()["manifest"]


@pytest.mark.again
def test_a_run_that_was_not_completed_says_how_to_go_on_and_what_was_used_again(project: Project) -> None:
    # Each call fails that a file names. A model that was edited would be another one, and be asked for all.
    failing = MODEL.replace("self.asked == 1", "str(self.asked) == pathlib.Path('failing').read_text()")
    project.write(
        "model.py", failing.replace('TransientError("', 'OSError("').replace("from", "import pathlib\nfrom", 1)
    )
    project.write("failing", "2")
    project.task("tasks/t.jsonl", project.record("a", "x"), project.record("b", "y"))
    result = project.run("--lm-batch-size=1")
    assert 3 == result.ret
    hint = "to retry the 1 unscored examples: the same command with --lm-resume"
    result.stdout.fnmatch_lines([hint])
    assert hint in (project.path / "reports/leaderboard.md").read_text()
    project.write("failing", "none")
    result = project.run("--lm-batch-size=1", "--lm-resume")
    assert 0 == result.ret
    result.stdout.fnmatch_lines(["resumed: reused 1 answer(s) of the ledger"])
