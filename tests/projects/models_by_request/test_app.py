"""Evals of the application."""

import app

from pytest_lmeval import eval_task

ROWS = [{"id": f"q{n}", "question": f"{n} and 1?", "answer": str(n + 1)} for n in range(12)]


@eval_task("ask", data=ROWS)
def test_ask(row, lm, lm_env):
    reply = app.answer(row["question"])
    lm.output(reply)
    lm.score("right", reply == row["answer"])
