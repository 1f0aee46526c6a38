from shop_chat import Chat

from pytest_lmeval import eval_task


@eval_task("refunds", data="customers.jsonl", min_score=0.8)
async def test_refund(row, lm):
    chat = Chat(lm.ask)
    user = lm.user(row["persona"], goal="To send a book back, and to know when the money comes.", max_turns=4)
    async for said in user:
        user.reply(await chat.answer(said))
    lm.output(user.turns)
    answers = [turn["content"] for turn in user.turns if turn["role"] == "assistant"]
    lm.score("answered", any("three days" in answer for answer in answers))
    lm.score("done", user.ended == "done")
