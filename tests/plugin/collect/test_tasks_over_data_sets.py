"""A task that scores the rows of a data set asks no model, and needs none."""

from __future__ import annotations

import pytest

from tests.conftest import BOTH, Project

TASK = """
key: dq
display_name: DQ
evaluated_entity_type: dataset
definition:
  dataset: {path: rows.csv}
  scorers: [{type: string_equals, prediction: "{{ sample.q }}", ground_truth: "{{ sample.a }}"}]
"""


@pytest.mark.parametrize("processes", BOTH)
def test_rows_are_scored_without_an_adapter_and_with_the_one_that_asks_nobody(project: Project, processes: str) -> None:
    project.write("tasks/dq.yaml", TASK)
    project.write("tasks/rows.csv", "q,a\nx,x\ny,y\n")
    for options in ((), ("--lm-adapter=none",)):
        result = project.run_pytest("tasks", processes, *options)
        assert 0 == result.ret
        board = project.board()
        (row,) = board["tasks"]
        assert ("none", 1.0, "rows.csv") == (board["adapter"], row["score"], row["dataset"]["path"])


def test_beside_a_task_that_asks_a_model_one_must_be_named(project: Project) -> None:
    project.write("tasks/dq.yaml", TASK)
    project.write("tasks/rows.csv", "q,a\nx,x\n")
    project.task("tasks/t.jsonl", project.record("a", "x"))
    assert 4 == project.run_pytest("tasks").ret
    result = project.run_pytest("tasks", "--lm-adapter=none")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*adapter none asks no model, and these examples need one: t (1);*"])
