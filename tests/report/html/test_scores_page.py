"""What the page of a real run shows of scores by name, of what judges said, and of an output that changed."""

from __future__ import annotations

from tests.conftest import Project
from tests.report.html.browser import Browser

MODEL = """
import json
from pytest_lmeval import Completion

class Model:
    name = "mini.v1"

    def __init__(self, other=False):
        self.other = other

    async def complete(self, request):
        said = request.text.rpartition("say: ")[2]
        return Completion(said.replace('car', 'bus') if self.other else said)

class Judge:
    name = "judge.v1"

    async def complete(self, request):
        is_red = "red" in request.text.rpartition("text")[0]
        return Completion(json.dumps({"reason": "names a <colour>", "score": 1 if is_red else 0}))
"""
EVAL = """
from pytest_lmeval import eval_task

@eval_task("colours", data=[{"id": "a", "q": "a car that is red"}, {"id": "b", "q": "car"}], min_score={"named": 0.9})
async def test_colours(row, lm):
    reply = (await lm.ask(f"say: {row['q']}")).text
    lm.output(reply)
    lm.score("kept", reply == row["q"], why="as <it> was asked")
    lm.score("named", (await lm.grade("Names a colour.", reply)).score)
"""


def test_scores_by_name_reasons_and_changed_outputs_are_where_a_reviewer_looks(
    browser: Browser, project: Project
) -> None:
    project.write("models.py", MODEL)
    project.write("test_colours.py", EVAL)
    options = ("test_colours.py", "--lm-judge=models:Judge", "--lm-baseline=base.json")
    project.run_pytest(*options, "--lm-adapter=models:Model", "--lm-update-baseline")
    project.run_pytest(*options, "--lm-adapter=models:Model", "--lm-adapter-arg=other=true")
    page = project.path / "reports/report.html"
    browser.open(page)

    rows = browser.js("[...document.querySelectorAll('table.scores tbody th')].map(each => each.textContent)")
    assert ["colours", "colours.kept", "colours.named"] == [row.split()[0] for row in rows]
    browser.open(page, "#/task/colours?id=a")
    shown = browser.js("document.querySelector('main').innerText")
    assert "as <it> was asked" in shown
    assert "names a <colour>" in shown
    assert "a bus that is red" in shown
    assert ["Question", "Scores"] == browser.texts(".detail h3")[:2]
    assert ["a car that is red", "car"] == browser.texts(".examples th > a + .gist")
    # The first of each is in the legend.
    for tag, words in (("del", ["car"]), ("ins", ["bus"])):
        assert words == browser.js(
            f"[...document.querySelectorAll('main {tag}')].map(each => each.textContent.trim()).slice(1)"
        )
