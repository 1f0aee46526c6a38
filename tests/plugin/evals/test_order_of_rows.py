"""The rows of an eval function in the order of its data, and by their tags, wherever examples are listed."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from pytest_lmeval.leaderboard.rows import as_in_data
from pytest_lmeval.records.recorded import recorded_result
from pytest_lmeval.types import ExampleResult
from tests.conftest import Project

_IDS = ("second", "first", "tenth", "alone", "beta")
_FUNCTION = f"""
import os
from pytest_lmeval import eval_task

@eval_task("rows", data=[{{"id": id}} for id in {_IDS}], tags=["hard", "two words"])
async def test_rows(row):
    assert row["id"] in os.environ.get("RIGHT", "")
"""


def _lines(project: Project) -> list[ExampleResult]:
    # As they came: examples of a function run at once.
    return [*map(recorded_result, project.ledger().values())]


def _follow_each_other(text: str) -> bool:
    places = [found.start() for id in _IDS if (found := re.search(rf"rows: {id}\b", text))]
    return len(places) == len(_IDS) and all(one < other for one, other in pairwise(places))


def test_rows_are_listed_in_the_order_of_their_data_with_their_tags(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("tests/test_rows.py", _FUNCTION)
    monkeypatch.setenv("RIGHT", " ".join(_IDS))
    project.run("tests", "--lm-gate=tasks", "--lm-baseline=base.json", "--lm-update-baseline")
    monkeypatch.setenv("RIGHT", "")
    result = project.run("tests", "--lm-baseline=base.json", "--lm-gate=tasks")
    assert _follow_each_other(result.stdout.str())
    listed = as_in_data(_lines(project))
    assert [(id, place) for place, id in enumerate(_IDS)] == [(each.id, each.place) for each in listed]
    assert {("hard", "two words")} == {each.tags for each in listed}
    page = (project.path / "reports" / "report.html").read_text()
    examples = re.findall(r'id="task-0">(.*?)</script>', page)[0]
    assert [*_IDS] == [each["id"] for each in json.loads(examples)["examples"]]
    assert _follow_each_other(project.lmeval("diff", "base.json", "reports/ledger.jsonl").stdout.str())


@pytest.mark.again
def test_the_first_row_and_examples_without_tags_have_neither_in_the_ledger(project: Project) -> None:
    project.write("tests/test_rows.py", _FUNCTION.replace(', tags=["hard", "two words"]', ""))
    project.run("tests", "--lm-gate=none", "--lm-sample=3", "--lm-seed=1")
    results = [*project.ledger().values()]
    assert [] == [line["id"] for line in results if "tags" in line]
    # Of a sample it is the place in all of the data.
    assert {line["id"]: _IDS.index(line["id"]) for line in results} == {
        line["id"]: line.get("place", 0) for line in results
    }
    assert all(line.get("place") != 0 for line in results)


def test_a_row_keeps_its_id_beside_other_parameters(project: Project) -> None:
    project.write(
        "tests/test_both.py",
        """
import pytest

from pytest_lmeval import eval_task

IDS = ["日", "本", "a/b", "a-b"]

@pytest.mark.parametrize("style", ["short", "long"])
@eval_task("both", data=[{"id": id} for id in IDS])
def test_both(row, style):
    assert row["id"] in IDS
""",
    )
    assert 0 == project.run("--lm-adapter=toy", "tests").ret
    expected = [f"both:{style}-{id}" for style in ("short", "long") for id in ("日", "本", "a/b", "a-b")]
    assert expected == [*project.ledger()]
