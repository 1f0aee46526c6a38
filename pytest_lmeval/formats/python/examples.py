"""Examples that a task's code makes on first use, each only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.numbers import is_whole
from pytest_lmeval.types import Example, RecordError


class Examples(Sequence[Example]):
    """The examples at ``indices`` of a task's data.

    ``make(index)`` returns an example or raises RecordRefused.
    """

    def __init__(self, make: Callable[[int], Example], indices: Iterable[int], line: int) -> None:
        self._make = make
        self._indices = list(indices)
        self._line = line
        self._made: dict[int, Example] = {}
        self._index_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Example]: ...
    def __getitem__(self, place: int | slice) -> Example | Sequence[Example]:
        """Return one example or a slice of the examples; raise RecordRefused if an example cannot be made."""
        if isinstance(place, slice):
            return [self.at(index) for index in self._indices[place]]
        return self.at(self._indices[place])

    def __iter__(self) -> Iterator[Example]:
        return map(self.at, self._indices)

    @property
    def indices(self) -> Sequence[int]:
        """The positions of the examples in the data, in order."""
        return self._indices

    def at(self, index: int) -> Example:
        """Return the example at ``index`` of the data; raise RecordRefused if the example cannot be made."""
        if index not in self._made:
            example = self._make(index)
            if example.id in self._index_of:
                first = self._index_of[example.id]
                raise RecordRefused("duplicate_task_id", "id", f"{example.id!r} is already the id of item {first}")
            self._index_of[example.id] = index
            self._made[index] = example
        return self._made[index]

    def check(self, used: Callable[[int], Sequence[int]] = range) -> list[RecordError]:
        """Make the examples that a run uses; drop the examples that cannot be made, and return their errors.

        ``used`` takes the number of examples and returns the positions to use. After dropping examples, the method
        calls ``used`` again. Equal errors become one error, which counts the examples.
        """
        faults: dict[tuple[str, str, str], list[str]] = {}
        while refused := self._refused([self._indices[place] for place in used(len(self._indices))]):
            for index, fault in refused.items():
                faults.setdefault((fault.rule, fault.field, fault.detail), []).append(f"item {index}")
            self._indices = [index for index in self._indices if index not in refused]
        return [self._error(fault, places) for fault, places in faults.items()]

    def _refused(self, indices: Iterable[int]) -> dict[int, RecordRefused]:
        found = {}
        for index in indices:
            try:
                self.at(index)
            except RecordRefused as refused:
                found[index] = refused
        return found

    def _error(self, fault: tuple[str, str, str], places: Sequence[str]) -> RecordError:
        rule, field, detail = fault
        more = f", and {len(places) - 1:,} more like it" if len(places) > 1 else ""
        return RecordError(self._line, None, rule, field, f"{places[0]}{more}: {detail}")


def id_of(given: object, index: int, subject: str = "") -> str:
    """Return the id of an item, by default its ``subject`` (or ``ex``) and its position."""
    if given is None:
        return f"{subject or 'ex'}-{index}"
    if is_whole(given):
        return str(given)
    if not isinstance(given, str) or not given:
        raise RecordRefused("bad_type", "id", f"expected a non-empty string or a whole number, got {given!r:.80}")
    return given
