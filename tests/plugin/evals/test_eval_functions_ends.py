"""How eval functions end: with requests that were cancelled, with a fixture that cannot be made."""

from __future__ import annotations

import pytest

from tests.conftest import Project


@pytest.fixture
def evals(project: Project) -> Project:
    project.copy("eval_ends", "model.py")
    return project


def test_a_request_that_an_application_gives_up_as_its_function_ends_is_no_error(evals: Project) -> None:
    evals.copy("eval_ends", "tests/test_cancelled.py")
    evals.run("--lm-adapter=model:Model", "tests", "--lm-concurrency=16")
    found = evals.ledger()
    left = found.pop("left:test_left")
    assert {"passed"} == {line["status"] for line in found.values()}, found
    # One that is not given up is one, whether or not its answer comes a moment later.
    assert "a request to stub.v1 was still unanswered when the function had ended" in left["error"]


def test_a_label_of_a_judge_is_neither_true_nor_false(evals: Project) -> None:
    evals.write(
        "tests/test_judged.py",
        """
from pytest_lmeval import eval_task

@eval_task("asserted")
async def test_asserted(lm):
    assert await lm.judge("Is it polite?", "Go away.")

@eval_task("compared")
async def test_compared(lm):
    label = await lm.judge("Is it polite?", "Go away.")
    lm.output(label)
    lm.note("labels", {label: [label]})
    assert label == "no" and label in ("no", "yes")
""",
    )
    evals.run("--lm-adapter=model:Model", "--lm-judge=model:Model", "tests")
    found = evals.ledger()
    assert (
        "TypeError: the label 'no' is neither true nor false: compare it with a label"
        in found["asserted:test_asserted"]["error"]
    )
    compared = found["compared:test_compared"]
    assert ("passed", "no", {"labels": {"no": ["no"]}}) == (
        compared["status"],
        compared["details"]["output"],
        compared["details"]["notes"],
    )


def test_why_a_fixture_cannot_be_made_is_on_the_board_and_not_how_that_is_shown(evals: Project) -> None:
    evals.write(
        "tests/conftest.py", "import pytest\n@pytest.fixture\ndef db():\n    raise RuntimeError('set DB_PASSWORD')\n"
    )
    evals.write(
        "tests/test_db.py",
        """
from pytest_lmeval import eval_task

@eval_task("broken")
async def test_broken(lm, db):
    assert db

@eval_task("unknown")
async def test_unknown(lm, nothing):
    assert nothing
""",
    )
    result = evals.run("--lm-adapter=model:Model", "tests")
    assert [
        "set-up failed: RuntimeError: set DB_PASSWORD (tests/conftest.py:4 in db)",
        "set-up failed: fixture 'nothing' not found",
    ] == [line["error"] for line in evals.ledger().values()]
    result.stdout.no_fnmatch_line("*def setup(self)*")
    result.stdout.no_fnmatch_line("*def pytest_fixture_setup*")


@pytest.mark.parametrize("order", [("tests", "tasks"), ("tasks", "tests")], ids=" ".join)
def test_functions_that_ask_nothing_run_before_or_after_the_records_of_a_model(
    evals: Project, order: tuple[str, str]
) -> None:
    evals.task("tasks/t.jsonl", {"id": "a", "prompt": "x", "targets": ["yes"], "metric": "exact_match"})
    evals.write(
        "tests/test_none.py",
        "from pytest_lmeval import eval_task\n\n@eval_task('none')\ndef test_none():\n    assert 1\n",
    )
    assert 0 == evals.run("--lm-adapter=model:Model", *order).ret
    assert "stub.v1" == evals.board()["adapter"]


def test_repeats_of_a_function_have_no_majority(evals: Project) -> None:
    evals.write(
        "tests/test_many.py",
        """
from itertools import count

from pytest_lmeval import eval_task

COUNT = count()

@eval_task("many", repeats=3)
async def test_many(lm):
    lm.score("right", bool(next(COUNT)))
""",
    )
    result = evals.run("--lm-adapter=model:Model", "tests")
    (row,) = evals.board()["tasks"]
    assert 2 / 3 == pytest.approx(row["metrics"]["pass@1"])
    assert not {name for name in row["metrics"] if name.startswith("maj")}
    result.stdout.no_fnmatch_line("*majority_score*")


def test_a_refused_request_is_explained_below_the_applications_own_frames(project: Project) -> None:
    project.write(
        "tests/test_x.py",
        """
import urllib.request
from pytest_lmeval import eval_task

def application(address):
    return urllib.request.urlopen(f"{address}/images", b"{}").read()

@eval_task("x")
def test_x(lm):
    assert application(lm.base_url)
""",
    )
    result = project.run("tests", "--lm-adapter=toy")
    result.stdout.fnmatch_lines(
        ["*return urllib.request.urlopen(*", "E *HTTPError*", "*-- example --*", "*POST /images is not answered here*"]
    )
    assert "urllib/request.py" not in result.stdout.str()
    assert "Captured" not in result.stdout.str()
