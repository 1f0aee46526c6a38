"""How requests fall into batches, those that cannot be asked apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pytest_lmeval.adapters.hf.batches import BatchLimits, batches
from pytest_lmeval.adapters.hf.rows import Batch, Row, RowFamily, families, rows_of
from pytest_lmeval.errors import AdapterError

_Request = TypeVar("_Request")
_Ready = TypeVar("_Ready")


@dataclass(slots=True)
class WindowPlan:
    """The requests of the ``numbers``: their ``batches``, and the errors of those that are in none."""

    numbers: Sequence[int]
    batches: list[Batch[Any]] = field(default_factory=list)
    errors: dict[int, AdapterError] = field(default_factory=dict)

    def parts(self) -> Iterator[WindowPlan]:
        """Yield the plan batch by batch; first the errors."""
        if self.errors:
            yield WindowPlan(list(self.errors), errors=self.errors)
        for batch in self.batches:
            yield WindowPlan([number for row in rows_of(batch) for number in row.answers], [batch])


def plan(
    rows: Iterable[Row], limits: BatchLimits, numbers: int, errors: dict[int, AdapterError], *, shares: bool
) -> WindowPlan:
    """Return the plan for ``numbers`` requests; ``shares`` says that a common beginning may be read once."""
    groups = families(rows) if shares else [RowFamily((row,)) for row in rows]
    return WindowPlan(range(numbers), list(batches(groups, limits)), errors)


def prepare(
    requests: Sequence[_Request], ready: Callable[[int, _Request], _Ready]
) -> tuple[Mapping[int, _Ready], dict[int, AdapterError]]:
    """Return by number what is ready to be asked, and the errors of what cannot be."""
    prepared: dict[int, _Ready] = {}
    errors: dict[int, AdapterError] = {}
    for number, request in enumerate(requests):
        try:
            prepared[number] = ready(number, request)
        except AdapterError as error:
            errors[number] = error
    return prepared, errors
