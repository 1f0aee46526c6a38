"""The order of shuffled rows against the ``datasets`` library, and its numbers against numpy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.data.shuffle import permutation
from pytest_lmeval.data.splits import Rows
from tests import needs

datasets = needs.module("datasets")
numpy = needs.module("numpy")


@given(seed=st.integers(0, 2**40) | st.integers(0, 2**300), size=st.integers(0, 300))
@settings(deadline=None)
def test_a_permutation_is_the_one_that_numpy_draws(seed: int, size: int) -> None:
    assert numpy.random.default_rng(seed).permutation(size).tolist() == permutation(seed, size)


def test_rows_are_shuffled_as_a_dataset_is() -> None:
    rows = [{"n": number} for number in range(50)]
    for seed in (0, 42, 1337):
        assert list(datasets.Dataset.from_list(rows).shuffle(seed=seed)) == list(Rows(rows, "").shuffle(seed=seed))
