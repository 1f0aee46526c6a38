"""Requests outside of examples in the ``run`` line of a ledger, which another program may have written."""

from __future__ import annotations

import pytest

from pytest_lmeval.records.service import Outside, joined
from tests.tables import each_row

FINE = {"adapter": "m", "requests": 2, "during": 1, "usage": {"cost": 0.5}, "steps": [{"kind": "http"}]}


@each_row(
    ("field", "value", "expected"),
    [
        ("requests", "2", "run.service: expected the counts requests and during"),
        ("during", -1, "run.service: expected the counts requests and during"),
        ("usage", {"cost": "x"}, "run.service.usage: expected numbers"),
        ("steps", {}, "run.service.steps: expected a list"),
    ],
)
def test_what_no_run_writes_is_refused(field: str, value: object, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}"):
        Outside.of(FINE | {field: value})


def test_parts_are_added_up_and_empty_ones_change_nothing() -> None:
    one = Outside.of(FINE)
    assert one == joined([Outside(), one])
    both = joined([one, one])
    assert (4, 2, {"cost": 1.0}, 2) == (both.requests, both.during, both.usage, len(both.steps))
    assert one == Outside.last_of([{}, {"service": FINE}, {}])
    with pytest.raises(ValueError, match=r"^run.service: expected an object, got \[\]"):
        Outside.of([])
