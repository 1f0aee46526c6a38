"""What an application answered, side by side: of two runs and of two models, of examples that fail, too."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.conftest import Project

MODELS = """
from pytest_lmeval import Completion

class Model:
    name = "some.v1"

    def __init__(self, last="on its way", **options):
        self.last = last

    async def complete(self, request):
        return Completion(f"Order {request.text} is {self.last}.")
"""
FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("orders", data=[{"id": each} for each in ("a1", "b2", "c3")])
async def test_orders(row, lm):
    said = (await lm.ask(row["id"])).text
    lm.output({"said": said} if row["id"] == "c3" else said)
    assert row["id"] != "b2", "never right"
    lm.score("right", "way" in said, why=said)
"""


def put_orders(project: Project) -> None:
    project.write("some.py", MODELS)
    project.write("tests/test_orders.py", FUNCTION)


def test_two_runs_show_what_the_application_answered(project: Project) -> None:
    put_orders(project)
    model = "--lm-adapter=some:Model"
    project.run("tests", model, "--lm-gate=tasks", "--lm-baseline=base.json", "--lm-update-baseline")
    project.run("tests", model, "--lm-adapter-arg=last=lost", "--lm-baseline=base.json", "--lm-include-per-example")
    result = project.lmeval("diff", "base.json", "reports/leaderboard.json")
    output = result.stdout.str()
    assert "  old (1.0000):\n    Order a1 is on its way.\n    right 1 (Order a1 is on its way.)\n" in output
    assert '    {"said": "Order c3 is lost."}' in output
    # What failed before and fails now is shown, too.
    neither = output.partition("passes in neither run, with another output: 1\n")[2]
    assert "orders: b2" in neither
    assert "Order b2 is lost." in neither
    said = json.loads(project.lmeval("diff", "base.json", "reports/leaderboard.json", "--format=json").stdout.str())
    assert [("a1", "Order a1 is on its way.", "Order a1 is lost.")] == [
        (flip["id"], flip["old"]["output"], flip["new"]["output"]) for flip in said["comparison"]["worse"][:1]
    ]
    assert ["b2"] == [flip["id"] for flip in said["failing_otherwise"]]
    markdown = (project.path / "reports/leaderboard.md").read_text()
    assert "| Order a1 is on its way. | Order a1 is lost. | right 1 (Order a1 is on its way.) | right 0" in markdown
    shown = _examples((project.path / "reports/report.html").read_text())
    assert [[{"output": "Order b2 is on its way."}], "Order b2 is lost."] == [
        shown["b2"]["before"][name] for name in ("answers", "now")
    ]
    assert "never right" in shown["b2"]["before"]["explained"]


def test_two_models_show_what_the_application_answered(project: Project) -> None:
    put_orders(project)
    project.run("tests", "--lm-adapter=a=some:Model", "--lm-adapter=b=some:Model", "--lm-adapter-arg=b:last=lost")
    shown = _examples((project.path / "reports/report.html").read_text())
    outputs = [column["runs"][0]["output"] for column in shown["b2"]["columns"]]
    assert ["Order b2 is on its way.", "Order b2 is lost."] == outputs
    assert ["passed", "failed"] == [column["status"] for column in shown["a1"]["columns"]]
    failed = (project.path / "reports/b/leaderboard.md").read_text()
    assert "| orders: b2 | failed | b2 | Order b2 is lost. | never right" in failed


def _examples(page: str) -> dict[str, dict[str, Any]]:
    found = re.search(r'id="task-0">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return {example["id"]: example for example in json.loads(found[1])["examples"]}
