from pytest_lmeval import eval_task

WORDS = ("good", "half", "bad", "again", "fenced", "prose")
LEVELS = {"0": "wrong", 0.5: "incomplete", 1: "right"}


@eval_task("awaited", data=[{"id": word} for word in WORDS])
async def test_awaited(row, lm):
    said = (await lm.ask(f"say: {row['id']}")).text
    grade = await lm.grade("Says good.", said, reference="good", levels=LEVELS, human_label=1)
    lm.score("grade", grade.score)


@eval_task("waited", data=[{"id": word} for word in WORDS])
def test_waited(row, lm):
    grade = lm.grade("Says good.", lm.ask(f"say: {row['id']}").text)
    judgment = lm.judge("Is it good?", row["id"], reason=True)
    lm.note("said", [grade.score, grade.reason, judgment.label, judgment.reason])
    lm.score("grade", grade.score)
