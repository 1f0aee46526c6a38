"""Rows with the methods of ``datasets.Dataset`` that functions of task files call.

As in ``datasets``, each column has one type of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, NoReturn, Self

Row = dict[str, Any]
_WITHOUT_EFFECT = frozenset(
    {"num_proc", "desc", "load_from_cache_file", "keep_in_memory", "batch_size", "features", "cache_file_name"}
)
_METHODS = (
    "filter, map, select, shuffle, sort, select_columns, remove_columns, rename_column, rename_columns, add_column, "
    "unique, flatten_indices, to_list, to_pandas, from_pandas"
)


class Table(Sequence[Row]):
    """Rows in order, with the methods of ``datasets.Dataset`` that read them. Reading a row returns a copy.

    ``first`` is the data's first split, whose columns determine which columns of other splits have floats.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], first: Table | None = None) -> None:
        self._rows = [dict(row) for row in rows]
        # As in a table, a missing value is None, and a column has one type of numbers.
        names = dict.fromkeys(name for row in self._rows for name in row)
        if any(len(row) != len(names) for row in self._rows):
            self._rows = [{name: row.get(name) for name in names} for row in self._rows]
        for name in names:
            column = [row[name] for row in self._rows]
            column += first[name] if first is not None and name in first.column_names else []
            if (floats := _same_numbers(column)) is not column:
                for row, value in zip(self._rows, floats, strict=False):
                    row[name] = value
        self.column_names: list[str] = [*names]

    @property
    def features(self) -> dict[str, Any]:
        """The column names, each mapped to None because the column's type is unknown."""
        return dict.fromkeys(self.column_names)

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return map(dict, self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return a row for an index, a column for a name, or columns of several rows for a slice or list of indexes."""
        if isinstance(index, str):
            return [row[index] for row in self._rows]
        if isinstance(index, slice | list | range):
            chosen = self._rows[index] if isinstance(index, slice) else [self._rows[place] for place in index]
            return {name: [row[name] for row in chosen] for name in self.column_names}
        return dict(self._rows[index])

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"rows of a task file have no {name!r}; they have {_METHODS}")

    def unique(self, column: str) -> list[Any]:
        return [*dict.fromkeys(self[column])]

    def to_list(self) -> list[Row]:
        return [*self]

    def to_pandas(self, **options: Any) -> Any:
        """Return the rows as a pandas DataFrame, with the column types that pyarrow chooses."""
        _check("to_pandas", options)
        return _arrow().Table.from_pylist(self._rows).to_pandas()


class RowSet(Table):
    """A table with the methods of ``datasets.Dataset`` that return new rows and leave existing rows unchanged."""

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, Any]], **_: Any) -> Self:
        return cls(rows)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Sequence[Any]], **_: Any) -> Self:
        return cls(dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))

    @classmethod
    def from_pandas(cls, frame: Any, preserve_index: bool | None = None, **_: Any) -> Self:
        """Return a pandas DataFrame's rows; a missing value becomes None, and a preserved index a column."""
        return cls(_arrow().Table.from_pandas(frame, preserve_index=preserve_index).to_pylist())

    def map(
        self,
        function: Callable[..., Any],
        *,
        with_indices: bool = False,
        batched: bool = False,
        remove_columns: Sequence[str] | str = (),
        fn_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> RowSet:
        """Return rows updated with the results of ``function``, which takes a row or, if ``batched``, all columns."""
        _check("map", options)
        more = dict(fn_kwargs or {})
        if batched:
            columns = self[:]
            made = function(columns, **more)
            size = len(next(iter(made.values()), ()))
            dropped = {*made, *([remove_columns] if isinstance(remove_columns, str) else remove_columns or ())}
            kept = {name: of for name, of in columns.items() if name not in dropped and len(of) == size}
            return RowSet.from_dict({**kept, **made})
        of_rows = [function(*given, **more) for given in _called_with(self, with_indices)]
        own = self.remove_columns(remove_columns or ())
        stored = ({key: [*v] if isinstance(v, tuple) else v for key, v in (made or {}).items()} for made in of_rows)
        return RowSet({**row, **made} for row, made in zip(own, stored, strict=True))

    def filter(self, function: Callable[..., Any], *, with_indices: bool = False, **options: Any) -> RowSet:
        """Return the rows for which ``function`` is true."""
        _check("filter", options)
        given = _called_with(self, with_indices)
        return self._of(row for row, each in zip(self._rows, given, strict=True) if function(*each))

    def select(self, indices: Iterable[int], **_: Any) -> RowSet:
        return self._of(self._rows[place] for place in indices)

    def shuffle(self, seed: int | None = None, **options: Any) -> RowSet:
        """Return the rows in the order that ``datasets`` draws for ``seed``; raise ValueError for None."""
        _check("shuffle", options)
        if seed is None:
            raise ValueError("shuffle without a seed gives a different order in every run: pass a seed")
        from pytest_lmeval.data.shuffle import permutation

        return self.select(permutation(seed, len(self._rows)))

    def sort(self, column: str, reverse: bool = False, **_: Any) -> RowSet:
        return self._of(sorted(self._rows, key=lambda row: row[column], reverse=reverse))

    def select_columns(self, names: Sequence[str] | str) -> RowSet:
        kept = [names] if isinstance(names, str) else names
        return RowSet({name: row[name] for name in kept} for row in self._rows)

    def remove_columns(self, names: Sequence[str] | str) -> RowSet:
        dropped = {names} if isinstance(names, str) else set(names)
        return RowSet({key: value for key, value in row.items() if key not in dropped} for row in self._rows)

    def rename_column(self, old: str, new: str) -> RowSet:
        return self.rename_columns({old: new})

    def rename_columns(self, names: Mapping[str, str]) -> RowSet:
        return RowSet({names.get(key, key): value for key, value in row.items()} for row in self._rows)

    def add_column(self, name: str, column: Sequence[Any]) -> RowSet:
        return RowSet({**row, name: value} for row, value in zip(self._rows, column, strict=True))

    def flatten_indices(self, **_: Any) -> RowSet:
        return self

    def _of(self, rows: Iterable[Row]) -> RowSet:
        made = RowSet(rows)
        made.column_names = made.column_names or list(self.column_names)
        return made


def _called_with(rows: RowSet, with_indices: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of a function for each row: the row and, if ``with_indices`` is true, the row's index."""
    return ((row, place) if with_indices else (row,) for place, row in enumerate(rows))


def _check(method: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for any option except those for speed and progress, which cannot change the result."""
    if unknown := sorted(options.keys() - _WITHOUT_EFFECT):
        raise TypeError(f"{method} of the rows of a task file takes no {unknown[0]!r}")


def _same_numbers(values: list[Any]) -> list[Any]:
    """Return ``values`` unchanged, or with all numbers as floats if any number, even within a list, is a float."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int, float}:
        return [float(value) if type(value) is int else value for value in values]
    if kinds == {list}:
        inner = [each for value in values for each in value or ()]
        if (floats := _same_numbers(inner)) is not inner:
            left = iter(floats)
            return [value if value is None else [*islice(left, len(value))] for value in values]
    return values


def _arrow() -> Any:
    try:
        import_module("pandas")
        return import_module("pyarrow")
    except ImportError:
        raise ImportError("frames of pandas need two packages: pip install pandas pyarrow") from None
