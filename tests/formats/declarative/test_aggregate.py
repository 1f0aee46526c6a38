"""Which rows the metrics of a task are worked out from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
