"""The metrics of a task: the rows that they are worked out from, and the one place of each kind's rules."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_lmeval.formats import declarative
from pytest_lmeval.formats.declarative.aggregate import scored_rows
from tests.formats.declarative.making import make, score


def test_rows_that_an_action_left_out_are_for_the_judges_notes_alone(tmp_path: Any) -> None:
    task = make(tmp_path)
    (one, other) = score(task, "1", "2")
    row = {"scorers": {"s": {"n": 1}}}
    # Of an answer that was taken apart into rows, an action may leave out some.
    mixed = replace(one, details={"rows": [row, {**row, "excluded": "action a"}]})
    whole = replace(other, status="excluded", score=None, details=row)
    left_out_by_itself = replace(other, id="z", status="excluded", score=None, details={**row, "excluded": "action a"})
    results = [mixed, whole, left_out_by_itself]
    assert [row] == scored_rows(results)
    assert 4 == len(scored_rows(results, excluded=True))


def test_what_differs_by_kind_of_scorer_or_metric_is_a_method_of_its_model() -> None:
    folder = Path(declarative.__file__).parent
    trees = {path.stem: ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py")}
    models = [ast.parse((folder / "models" / name).read_text("utf-8")) for name in ("metrics.py", "scorers.py")]
    kinds = {node.name for tree in models for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    asked = {
        (name, word.id)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        for word in ast.walk(node.args[1])
        if isinstance(word, ast.Name) and word.id in kinds
    }
    # Snippets are found by the builder, a mean names a score, and the registry has the rest of a metric.
    snippets, registered = {("build", "PythonMetric"), ("build", "PythonScorer")}, {"checks", "task"}
    assert {*snippets, ("aggregate", "FieldMetric"), *((name, "MetricScorer") for name in registered)} == asked
