from shop_replies import answer

from pytest_lmeval import eval_task

RUBRIC = "Says in which state the order is and what happens next, and promises nothing else."
LEVELS = {
    "0": "the state is wrong, or there is a promise",
    "0.5": "the state alone",
    "1": "the state, and what happens next",
}


@eval_task("replies", data="questions.jsonl", min_score=0.9)
async def test_reply(row, lm):
    reply = await answer(lm.ask, row["question"], row["order"])
    lm.output(reply)
    grade = await lm.grade(RUBRIC, reply, levels=LEVELS, human_label=row.get("reviewer"))
    lm.score("helpful", grade.score, why=grade.reason)
