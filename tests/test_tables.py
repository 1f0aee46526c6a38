"""A table that is one test runs all of its rows, and names those that fail."""

from __future__ import annotations

import pytest

from tests.tables import each_row


def test_every_row_is_run_and_those_that_fail_are_named() -> None:
    ran = []

    @each_row(("given", "expected"), [(1, 1), (2, 3), pytest.param(4, 5, id="four"), (6, 6)])
    def equal(given: int, expected: int) -> None:
        ran.append(given)
        assert given == expected

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows failed") as caught:
        equal()
    assert [1, 2, 4, 6] == ran
    assert [["row: (2, 3)"], ["row: 'four'"]] == [error.__notes__ for error in caught.value.exceptions]


def test_a_row_that_fails_alone_fails_as_itself() -> None:
    @each_row("text", ["1", "x"])
    def refused(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE") as caught:
        refused()
    assert ["row: '1'"] == caught.value.__notes__


def test_a_table_without_rows_or_with_other_names_is_no_test() -> None:
    for names, rows in (("other", [1]), ("x", []), ("x", [pytest.param(1, marks=pytest.mark.slow)])):
        with pytest.raises(AssertionError):

            @each_row(names, rows)
            def check(x: int) -> None: ...
