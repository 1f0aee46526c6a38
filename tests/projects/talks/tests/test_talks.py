from pytest_lmeval import eval_task

RUBRIC = "Says in which state the order is and what happens next, and promises nothing else, ever."


async def talk(row, lm):
    user = lm.user(row["who"], goal="To have it.", max_turns=2)
    messages = []
    async for said in user:
        messages.append({"role": "user", "content": said})
        reply = (await lm.ask(messages)).text
        messages.append({"role": "assistant", "content": reply})
        user.reply(reply)
    return user


@eval_task("told", data=[{"id": "knows", "who": "Knows A17."}, {"id": "silent", "who": "Knows no number."}])
async def test_told(row, lm):
    user = await talk(row, lm)
    lm.output(user.turns)
    grade = await lm.grade(RUBRIC, user.turns[-1]["content"])
    lm.score("kind", grade.score, why=grade.reason)


@eval_task("silent", data=[{"id": "knows", "who": "Knows A17."}])
async def test_without_output(row, lm):
    lm.score("done", (await talk(row, lm)).ended == "done")
