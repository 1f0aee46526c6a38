from shop_agent import answer, find_order

from pytest_lmeval import eval_task


@eval_task("orders", data="questions.jsonl", min_score=0.9)
async def test_question(row, lm):
    reply = await answer(lm.ask, row["question"], {"find_order": lm.tool(find_order)})
    lm.score("right", row["expected"] in reply)
    lm.score("short", len(reply) < 80)


@eval_task("unknown-order", metadata={"must_pass": True})
async def test_unknown_order(lm):
    reply = await answer(lm.ask, "Where is order Z99?", {"find_order": lm.tool(find_order)})
    assert "unknown" in reply
    assert lm.called("find_order", times=1, arguments={"order": "Z99"})
