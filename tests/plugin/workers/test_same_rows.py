"""Rows that differ between worker processes are refused before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

EVAL = """
import os, datetime
from decimal import Decimal
from types import MappingProxyType
from pytest import mark
from pytest_lmeval import eval_task

is_second = os.environ.get("PYTEST_XDIST_WORKER") == "gw1"
letters = ["a", "b", "c", "d"]
other = letters[::-1] if is_second else letters

class Thing:
    pass

def rows():
    return {rows}

{marks}
@eval_task("x", data=rows)
def test_x(row, lm{also}):
    lm.ask("say: x")
    lm.score("s", 1)
"""
PROMPTS = """
import os
from pytest_lmeval.tasks import AccuracyCompletion, BaseTask


class Draws(BaseTask[str]):
    NAME = "Draws"
    DATASET_PATH = "rows.jsonl"
    METRICS = [AccuracyCompletion]

    def _get_instruction_text(self, item):
        return f"say: {item['q']}" + ("?" if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" else "!")

    def _get_ground_truth(self, item):
        return item["q"]
"""
SAYS = "the workers collected different examples: the same ids have different contents in "


def evals(project: Project, rows: str, marks: str = "", also: str = "") -> None:
    project.write("test_x.py", EVAL.format(rows=rows, marks=marks, also=also))


DIFFERENT = {
    "an order of its own": ("[{'q': each} for each in other]", "", ""),
    "other rows under the same ids": ("[{'id': n, 'q': is_second} for n in range(3)]", "", ""),
    "one value deep in a row": ("[{'q': [{'n': 1}, {'n': 1 + is_second}]}, {'q': 2}]", "", ""),
    "a mapping that is no dict": ("[MappingProxyType({'q': is_second})]", "", ""),
    "a value of another type": ("[{'q': Thing() if is_second else Decimal(1)}]", "", ""),
    "rows beside parameters": ("[{'q': each} for each in other]", "@mark.parametrize('n', [1, 2])", ", n"),
}


@pytest.mark.parametrize(
    "which",
    [name if number < 2 else pytest.param(name, marks=pytest.mark.again) for number, name in enumerate(DIFFERENT)],
)
def test_rows_that_differ_between_workers_are_refused(project: Project, which: str) -> None:
    evals(project, *DIFFERENT[which])
    result = project.run("-n2")
    assert 4 == result.ret
    assert SAYS in result.stderr.str()
    assert "test_x.py::test_x[" in result.stderr.str()
    assert not (project.path / "calls.txt").exists()
    assert 0 == project.run().ret


@pytest.mark.parametrize("dist", ["worksteal", pytest.param("each", marks=pytest.mark.again)])
def test_rows_are_compared_however_they_are_shared_out(project: Project, dist: str) -> None:
    evals(project, *DIFFERENT["an order of its own"])
    result = project.run("-n2", f"--dist={dist}")
    assert (4, True) == (result.ret, SAYS in result.stderr.str())
    assert not (project.path / "calls.txt").exists()


@pytest.mark.again
@pytest.mark.parametrize(
    "options", ["--lm-limit=2", "--lm-adapter=one=model:Model --lm-adapter=two=model:Model", "-k 2"]
)
def test_rows_are_compared_in_a_part_of_the_run_and_with_several_models(project: Project, options: str) -> None:
    evals(project, *DIFFERENT["an order of its own"])
    result = project.run("-n2", *options.split())
    assert (4, True) == (result.ret, SAYS in result.stderr.str())


def test_a_prompt_of_a_task_file_that_differs_between_workers_is_refused(project: Project) -> None:
    project.write("tasks/task_draws.py", PROMPTS)
    project.write("tasks/rows.jsonl", '{"q": "a"}\n{"q": "b"}\n')
    result = project.run("-n2")
    assert (4, True) == (result.ret, SAYS in result.stderr.str())


def test_values_that_are_no_json_are_compared_by_type_and_the_run_says_so(project: Project) -> None:
    values = "'o': Thing(), 's': {*other}, 'f': lambda: 1, 't': datetime.datetime.now(), 'n': float('nan')"
    evals(project, f"[{{'q': 1, {values}}}]")
    says = "x: the workers' rows hold values that are not JSON (Thing, datetime, function, set); only their types"
    assert 0 == project.run("-n2").ret
    assert 1 == sum(says in remark for remark in project.board()["remarks"])
    assert 0 == project.run("-n1").ret
    assert not [remark for remark in project.board()["remarks"] if says in remark]
