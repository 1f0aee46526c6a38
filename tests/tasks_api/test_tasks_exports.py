"""What a task file may import stands in one sorted list."""

from __future__ import annotations

from pytest_lmeval import tasks


def test_the_public_names_are_sorted_and_there() -> None:
    # Constants first, as the linter sorts.
    assert sorted(tasks.__all__, key=lambda name: (not name.isupper(), name)) == tasks.__all__
    assert [] == [name for name in tasks.__all__ if not hasattr(tasks, name)]


def test_every_public_class_says_what_it_is() -> None:
    assert [] == [name for name in tasks.__all__ if not (getattr(tasks, name).__doc__ or "").strip()]
