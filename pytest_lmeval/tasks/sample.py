"""Define the samples of task classes, their response types and their metric contexts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from inspect import get_annotations
from typing import Any

from pytest_lmeval.errors import nearest
from pytest_lmeval.types import Message


class ResponseType(StrEnum):
    """The form of an answer: generated text, or the log-probabilities of several continuations."""

    COMPLETION = "completion"
    LOGLIKELIHOODS = "loglikelihoods"


class BaseMetricContext:
    """Further inputs for an item's metrics; a subclass annotates the fields, whose values are keyword arguments.

    A field with a default value is optional.

    >>> class Tests(BaseMetricContext):
    ...     entry_point: str
    ...     timeout_s: float = 3.0
    >>> Tests(entry_point="add").as_dict()
    {'entry_point': 'add', 'timeout_s': 3.0}
    """

    def __init__(self, **fields: Any) -> None:
        name, known = type(self).__name__, _annotated(type(self))
        for field in fields:
            if field not in known:
                hint = nearest(field, known, "expected")
                raise TypeError(f"{name} has no field {field!r}{hint}")
        for field in known:
            if field in fields:
                setattr(self, field, fields[field])
            elif not hasattr(type(self), field):
                raise TypeError(f"{name} lacks {field!r}; it has the fields {', '.join(known)}")

    def as_dict(self) -> dict[str, Any]:
        """Return the fields' values by name."""
        return {field: getattr(self, field) for field in _annotated(type(self))}


@dataclass(frozen=True, slots=True)
class Sample:
    """A question about an item, which ``_create_samples`` returns and ``post_process_generated_completion`` receives.

    The run sets ``id``, ``item`` and ``index``, which is the item's position in its split, counted from 0.
    """

    id: str | int
    subject: str
    messages: Sequence[Message]
    ground_truth: str | Sequence[str] | None
    possible_completions: Sequence[str] | None = None
    context: Any = None
    index: int = 0
    item: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def _annotated(kind: type) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        known.update(get_annotations(each))
    return known
