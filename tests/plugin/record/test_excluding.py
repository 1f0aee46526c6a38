"""Examples that their task leaves out of its scores: counted and listed, neither passed over nor failed."""

from __future__ import annotations

from tests.conftest import Project

CONFTEST = """
from pytest_lmeval import Score

def english(prediction, targets, extras):
    return Score(float(prediction == targets[0]), excluded="not English" if prediction == "nein" else "")

def pytest_lmeval_register(registry):
    registry.add_metric("english", english)
"""


def test_an_excluded_example_is_no_failure_has_no_score_and_is_counted(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.task(
        "tasks/words.jsonl",
        project.record("a", "yes", metric="english"),
        project.record("b", "nein", target="no", metric="english"),
    )
    result = project.run("--lm-include-per-example")
    assert 0 == result.ret
    board = project.board()
    assert (True, 1.0, 1) == (board["complete"], board["overall_score"], board["counts"]["excluded"])
    excluded = project.examples()["words:b"]
    assert ("excluded", None, "not English") == (excluded["status"], excluded["score"], excluded["error"])
    assert (2, 1, 1) == tuple(board["tasks"][0][name] for name in ("total", "excluded", "correct"))


def test_a_run_of_which_every_example_is_excluded_is_not_green(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.task("tasks/words.jsonl", project.record("b", "nein", metric="english"))
    result = project.run()
    assert 3 == result.ret
    result.stdout.fnmatch_lines(["*no example was scored: 1 were excluded by their tasks"])
    assert (False, None) == (project.board()["complete"], project.board()["overall_score"])
