"""A table of short checks as one test: pytest, xdist and collection cost about 5 ms of CPU for every test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable

import pytest

__all__ = ["each_row"]

_PARAM = type(pytest.param())


def each_row(
    names: str | tuple[str, ...], rows: Iterable[object]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every row as ``parametrize`` does, but in one test, which names all rows that fail.

    For checks of milliseconds that take no fixtures: those would be shared by the rows.
    """
    table = [_row(names, row) for row in rows]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run() -> None:
            failed: list[BaseException] = []
            for values, said in table:
                try:
                    test(**values)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"row: {said}")
                    failed.append(error)
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(table)} rows failed", failed)

        assert table
        assert list(inspect.signature(test).parameters) == [*table[0][0]], "a row has all arguments, in their order"
        # Else pytest takes the arguments of a row for fixtures; a function has the attribute only once it is set.
        run.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
        return run

    return decorate


def _row(names: str | tuple[str, ...], row: object) -> tuple[dict[str, object], str]:
    """Return the arguments of a row, and how a failure names it."""
    said = repr(row)
    if isinstance(row, _PARAM):
        assert not row.marks, "rows of one test have no marks of their own"
        said = repr(row.id or row.values)
        row = row.values[0] if isinstance(names, str) else row.values
    if isinstance(names, str):
        return {names: row}, said
    assert isinstance(row, tuple | list)
    return dict(zip(names, row, strict=True)), said
