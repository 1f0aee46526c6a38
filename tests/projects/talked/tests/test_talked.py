from pytest_lmeval import eval_task

PEOPLE = ("short", "long", "again", "prose", "at once", "silent", "broken", "twice", "typed")


@eval_task("awaited", data=[{"id": each} for each in PEOPLE])
async def test_awaited(row, lm):
    user = lm.user(f"Somebody {row['id']}.", goal="A refund.", max_turns=3)
    async for said in user:
        if row["id"] == "silent":
            continue
        if row["id"] == "broken":
            break
        answer = (await lm.ask(f"System prompt.\nsay: re {said}")).text
        user.reply(answer if row["id"] != "typed" else answer.encode())
        if row["id"] == "twice":
            user.reply("and more")
    lm.output(user.turns)
    lm.score("done", user.ended == "done")


@eval_task("waited")
def test_waited(lm):
    user = lm.user("Somebody short.")
    for said in user:
        user.reply(lm.ask(f"say: re {said}").text)
    assert (user.ended, [*user]) == ("done", [])
    assert ["1", "re 1", "2", "re 2", "3"] == [turn["content"] for turn in user.turns]


@eval_task("refused", data=[{"id": "persona"}, {"id": "max_turns"}])
def test_refused(row, lm):
    lm.user(" " if row["id"] == "persona" else "Somebody", max_turns=0)
