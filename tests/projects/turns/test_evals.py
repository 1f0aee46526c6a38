"""Eval functions with every outcome, of a module and of a class; the second needs a fixture that the first has not."""

import logging
import warnings

import pytest

from pytest_lmeval import eval_task

ROWS = [{"id": each, "say": each} for each in ("yes", "no", "skip", "xfail", "raise", "warn", "yes-again", "last")]


@eval_task("answers", data=ROWS)
async def test_answers(row, lm):
    print("printed for", row["id"])
    logging.getLogger("evals").warning("logged for %s", row["id"])
    if row["id"] == "skip":
        pytest.skip("no reason")
    if row["id"] == "xfail":
        pytest.xfail("known")
    if row["id"] == "raise":
        raise ValueError("broken")
    if row["id"] == "warn":
        warnings.warn("warned for it", stacklevel=1)
    said = (await lm.ask(f"say: {row['say']}")).text
    assert said != "no"


@eval_task("shelved", data=ROWS[:4])
async def test_shelved(row, lm, shelf):
    lm.score("there", shelf == ["book"] and row["id"] != "no")


class TestBooks:
    @eval_task("books", data=ROWS[:4], threads=True)
    def test_books(self, row, lm):
        said = lm.ask(f"say: {row['say']}").text
        assert said == row["id"]


@eval_task("one", data=ROWS)
def test_one_at_a_time(row, lm):
    print("printed for", row["id"])
    logging.getLogger("evals").warning("logged for %s", row["id"])
    if row["id"] == "xfail":
        pytest.xfail("known")
    if row["id"] == "skip":
        pytest.skip("no reason")
    if row["id"] == "raise":
        raise ValueError("broken")
    if row["id"] == "warn":
        warnings.warn("warned for it", stacklevel=1)
    said = lm.ask(f"say: {row['say']}").text
    assert said != "no"


def test_of_nobody():
    print("a plain test")
