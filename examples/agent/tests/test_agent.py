from shop_agent import answer, find_order

from pytest_lmeval import eval_task


def traced(lm):
    """Return the agent's tools, each call a step of the example."""

    def find(order):
        found = find_order(order)
        lm.step("tool", "find_order", order, found)
        return found

    return {"find_order": find}


@eval_task("orders", data="questions.jsonl", min_score=0.9)
async def test_question(row, lm):
    reply = await answer(lm.ask, row["question"], traced(lm))
    lm.score("right", row["expected"] in reply)
    lm.score("short", len(reply) < 80)


@eval_task("unknown-order", metadata={"must_pass": True})
async def test_unknown_order(lm):
    reply = await answer(lm.ask, "Where is order Z99?", traced(lm))
    assert "unknown" in reply
    assert [step.input for step in lm.trace if step.kind == "tool"] == ["Z99"]
