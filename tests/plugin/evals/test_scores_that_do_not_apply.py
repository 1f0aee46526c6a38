"""A score of None: it does not apply to the row, and counts neither as right nor as wrong."""

from __future__ import annotations

import pytest

from tests.conftest import Project

FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("ask", data=[{{"id": str(n), "n": n}} for n in range(10)], score="right",
           threshold={{"right": 1, "found": 0.9}}, min_score={{"found": {floor}}})
def test_ask(row, lm):
    lm.score("found", None if row["n"] {none} else row["n"] != 9, why="no page has the answer")
    lm.score("right", 1)
"""


def test_a_score_of_none_leaves_its_mean_its_floor_and_the_example_alone(project: Project) -> None:
    project.write("tests/test_ask.py", FUNCTION.format(floor=0.8, none="< 5"))
    project.run("tests", "--lm-adapter=none").assert_outcomes(passed=9, failed=1)
    (row,) = project.board()["tasks"]
    assert (0.8, 5, 5) == tuple(row["scores"]["found"][name] for name in ("score", "n", "missing"))
    assert "passed" == project.ledger()["ask:3"]["status"]


def test_a_floor_of_a_score_that_applies_to_no_row_is_not_met_in_silence(project: Project) -> None:
    project.write("tests/test_ask.py", FUNCTION.format(floor=0.8, none=">= 0"))
    result = project.run("tests", "--lm-adapter=none")
    assert 0 != result.ret
    assert "ask.found" in result.stdout.str()


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ("lm.score('s', None)", "the score 's' decides, and is None: record a number, or skip the row"),
        ("lm.score('s', 1); lm.score('s', None)", "lm.score('s') is None, and was 1 before; a name has one score"),
        ("lm.score('s', None); lm.score('s', 0)", "lm.score('s') is 0, and was None before; a name has one score"),
        ("lm.score('s', 'yes')", "expected a bool, a number from 0 to 1, or None for a score that does not apply"),
    ],
)
def test_none_cannot_decide_and_cannot_be_taken_back(project: Project, calls: str, error: str) -> None:
    project.write(
        "tests/test_x.py", f"from pytest_lmeval import eval_task\n@eval_task('x')\ndef test_x(lm):\n    {calls}\n"
    )
    assert 3 == project.run("tests", "--lm-adapter=none").ret
    assert error in project.ledger()["x:test_x"]["error"]


def test_none_before_a_number_lets_the_number_decide(project: Project) -> None:
    project.write(
        "tests/test_x.py",
        "from pytest_lmeval import eval_task\n@eval_task('x')\ndef test_x(lm):\n"
        "    lm.score('a', None)\n    lm.score('a', None)\n    lm.score('b', 0.25)\n",
    )
    project.run("tests", "--lm-adapter=none").assert_outcomes(failed=1)
    assert 0.25 == project.ledger()["x:test_x"]["score"]
