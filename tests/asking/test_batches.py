"""Batches are a pure function of the order of the selected examples."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.run.plan import plan_batches
from tests.tables import each_row

_GROUPS = st.lists(st.sampled_from("abc"), max_size=40)
_SIZES = st.integers(1, 10)


def _keyed(groups: list[str]) -> list[tuple[str, int]]:
    return [(group, number) for number, group in enumerate(groups)]


@each_row(
    ("groups", "size", "expected"),
    [
        ("", 8, []),
        ("a", 8, [[0]]),
        ("aaaaa", 2, [[0, 1], [2, 3], [4]]),
        ("aabba", 2, [[0, 1], [2, 3], [4]]),
        ("aba", 2, [[0, 2], [1]]),
        ("abc", 8, [[0], [1], [2]]),
        ("aaa", 1, [[0], [1], [2]]),
    ],
)
def test_known_plans(groups: str, size: int, expected: list[list[int]]) -> None:
    assert expected == plan_batches(_keyed(list(groups)), size)


@settings(deadline=None)
@given(_GROUPS, _SIZES)
def test_a_batch_never_mixes_groups_nor_exceeds_the_size(groups: list[str], size: int) -> None:
    for batch in plan_batches(_keyed(groups), size):
        assert 1 == len({groups[key] for key in batch})
        assert len(batch) <= size


@settings(deadline=None)
@given(_GROUPS, _SIZES)
def test_only_the_last_batch_of_a_group_is_short(groups: list[str], size: int) -> None:
    batches = plan_batches(_keyed(groups), size)
    for group in set(groups):
        own = [batch for batch in batches if groups[batch[0]] == group]
        assert [size] * (len(own) - 1) == [len(batch) for batch in own[:-1]]
        assert [key for batch in own for key in batch] == [key for key, name in enumerate(groups) if name == group]


@settings(deadline=None)
@given(_GROUPS, _SIZES)
def test_batches_come_in_the_order_of_their_first_keys(groups: list[str], size: int) -> None:
    firsts = [batch[0] for batch in plan_batches(_keyed(groups), size)]
    assert sorted(firsts) == firsts
