"""LCS length against the textbook table."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.metrics import lcs_length
from tests.examples import examples

SEQUENCE = st.text("abc", max_size=40) | st.text("abcdefghijklmnop", max_size=80)
many = examples(1000)


def test_items_need_only_be_hashable() -> None:
    assert 2 == lcs_length([1, "one", (1,)], ["one", (1,), 1])


@many
@given(SEQUENCE, SEQUENCE)
def test_equals_the_textbook_table(left: str, right: str) -> None:
    assert _table(left, right) == lcs_length(left, right)


@given(st.text("ab", min_size=60, max_size=200), st.text("ab", min_size=60, max_size=200))
@settings(max_examples=50, deadline=None)
def test_rows_of_more_than_a_machine_word_carry_over(left: str, right: str) -> None:
    assert _table(left, right) == lcs_length(left, right)


def _table(left: Sequence[str], right: Sequence[str]) -> int:
    above = [0] * (len(right) + 1)
    for one in left:
        row = [0]
        for place, other in enumerate(right):
            row.append(above[place] + 1 if one == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]
