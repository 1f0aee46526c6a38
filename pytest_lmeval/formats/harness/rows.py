"""The rows of a data set, with the methods of ``datasets.Dataset`` that functions of task files call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

Row = dict[str, Any]
_WITHOUT_EFFECT = frozenset(
    {"num_proc", "desc", "load_from_cache_file", "keep_in_memory", "batch_size", "features", "cache_file_name"}
)
_METHODS = "filter, map, select, shuffle, sort, remove_columns, rename_column, rename_columns, add_column, to_list"


class RowSet(Sequence[Row]):
    """Rows in order; every method returns new rows and changes none. Rows that are read are copies."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [dict(row) for row in rows]
        # As in a table: what one row lacks is None in it.
        names = dict.fromkeys(name for row in self._rows for name in row)
        if any(len(row) != len(names) for row in self._rows):
            self._rows = [{name: row.get(name) for name in names} for row in self._rows]
        self.column_names = [*names]

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, Any]], **_: Any) -> RowSet:
        """Return the rows of a list."""
        return cls(rows)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Sequence[Any]], **_: Any) -> RowSet:
        """Return the rows of columns of one length."""
        return cls(dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))

    @property
    def features(self) -> dict[str, Any]:
        """The names of the columns; their types are not known."""
        return dict.fromkeys(self.column_names)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return map(dict, self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return a row, for a name a column, for a slice or a list of places their columns."""
        if isinstance(index, str):
            return [row[index] for row in self._rows]
        if isinstance(index, slice | list | range):
            chosen = self._rows[index] if isinstance(index, slice) else [self._rows[place] for place in index]
            return {name: [row[name] for row in chosen] for name in self.column_names}
        return dict(self._rows[index])

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"rows of a task file have no {name!r}; they have {_METHODS}")

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
        """Return each row with what ``function`` makes of it over its columns; of batches, of all rows at once."""
        _check("map", options)
        more = dict(fn_kwargs or {})
        dropped = {remove_columns} if isinstance(remove_columns, str) else set(remove_columns or ())
        if batched:
            columns = self[:]
            made = function(columns, **more)
            kept = {name: values for name, values in columns.items() if name not in dropped and name not in made}
            size = len(next(iter(made.values()), ()))
            return RowSet.from_dict({**{name: values for name, values in kept.items() if len(values) == size}, **made})
        rows = []
        for place, row in enumerate(self._rows):
            given = (dict(row), place) if with_indices else (dict(row),)
            made = function(*given, **more)
            own = {name: value for name, value in row.items() if name not in dropped}
            rows.append(own if made is None else {**own, **_as_stored(made)})
        return RowSet(rows)

    def filter(self, function: Callable[..., Any], *, with_indices: bool = False, **options: Any) -> RowSet:
        """Return the rows that ``function`` is true of."""
        _check("filter", options)
        pairs = enumerate(self._rows)
        return self._of(
            row for place, row in pairs if function(*((dict(row), place) if with_indices else (dict(row),)))
        )

    def select(self, indices: Iterable[int], **_: Any) -> RowSet:
        """Return the rows at ``indices``."""
        return self._of(self._rows[place] for place in indices)

    def shuffle(self, seed: int | None = None, **options: Any) -> RowSet:
        """Return the rows in the order that the ``datasets`` library draws for ``seed``; raise ValueError for None."""
        _check("shuffle", options)
        if seed is None:
            raise ValueError("shuffle without a seed gives another order in every run: give it a seed")
        from pytest_lmeval.data.shuffle import permutation

        return self.select(permutation(seed, len(self._rows)))

    def sort(self, column: str, reverse: bool = False, **_: Any) -> RowSet:
        """Return the rows in the order of a column."""
        return self._of(sorted(self._rows, key=lambda row: row[column], reverse=reverse))

    def remove_columns(self, names: Sequence[str] | str) -> RowSet:
        """Return the rows without these columns."""
        dropped = {names} if isinstance(names, str) else set(names)
        return RowSet({key: value for key, value in row.items() if key not in dropped} for row in self._rows)

    def rename_column(self, old: str, new: str) -> RowSet:
        """Return the rows with a column of another name."""
        return self.rename_columns({old: new})

    def rename_columns(self, names: Mapping[str, str]) -> RowSet:
        """Return the rows with columns of other names."""
        return RowSet({names.get(key, key): value for key, value in row.items()} for row in self._rows)

    def add_column(self, name: str, column: Sequence[Any]) -> RowSet:
        """Return the rows with one column more."""
        return RowSet({**row, name: value} for row, value in zip(self._rows, column, strict=True))

    def to_list(self) -> list[Row]:
        """Return the rows as a list."""
        return [*self]

    def _of(self, rows: Iterable[Row]) -> RowSet:
        made = RowSet(rows)
        made.column_names = made.column_names or list(self.column_names)
        return made


def _check(method: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that could change the rows: those for speed and progress change nothing."""
    unknown = sorted(options.keys() - _WITHOUT_EFFECT)
    if unknown:
        raise TypeError(f"{method} of the rows of a task file takes no {unknown[0]!r}")


def _as_stored(made: Mapping[str, Any]) -> Row:
    return {key: [*value] if isinstance(value, tuple) else value for key, value in made.items()}
