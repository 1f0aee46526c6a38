import re

from shop_help import PAGES, answer, find_pages

from pytest_lmeval import eval_task


def is_grounded(reply, pages):
    """Tell whether every number in a reply is on one of the pages."""
    known = " ".join(PAGES[name] for name in pages)
    return {*re.findall(r"\d+", reply)} <= {*re.findall(r"\d+", known)}


@eval_task("help", data="questions.jsonl", score="right", min_score={"found": 0.9})
async def test_question(row, lm):
    with lm.span("find_pages", kind="retrieval") as step:
        pages = step.output = find_pages(row["question"])
    lm.score("found", row["page"] in pages, why=f"found {', '.join(pages)}")
    reply = await answer(lm.ask, row["question"], pages)
    lm.output(reply)
    lm.score("right", row["expected"] in reply)
    lm.score("grounded", is_grounded(reply, pages))
