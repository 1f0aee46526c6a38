"""Represent the requests that belong to no example; a ledger stores them in its ``run`` line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.board import SERVICE
from pytest_lmeval.leaderboard.details import answered_requests
from pytest_lmeval.numbers import is_count, is_number, total_usage

OUTSIDE = ("", "")
"""The task and id under which requests that belong to no example are stored."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The requests that belong to no example; falsy if there are no such requests.

    ``during`` counts the requests that arrived while examples ran. ``adapter`` and ``adapter_key`` identify the model.
    ``usage`` is the total usage of all ``steps``.
    """

    adapter: str = ""
    adapter_key: str = ""
    requests: int = 0
    during: int = 0
    usage: Mapping[str, float] = field(default_factory=dict)
    steps: Sequence[Mapping[str, object]] = ()

    def __bool__(self) -> bool:
        return bool(self.requests)

    @classmethod
    def of(cls, value: object) -> Outside:
        """Return the requests in the ``service`` field of a ``run`` line; raise ValueError if the field is invalid."""
        if not isinstance(value, Mapping):
            raise ValueError(f"run.{SERVICE}: expected an object, got {value!r:.80}")
        found = cls(**{each.name: value[each.name] for each in fields(cls) if each.name in value})
        if not all(map(is_count, (found.requests, found.during))):
            raise ValueError(f"run.{SERVICE}: expected the counts requests and during, got {value!r:.80}")
        if not isinstance(found.usage, Mapping) or not all(map(is_number, found.usage.values())):
            raise ValueError(f"run.{SERVICE}.usage: expected numbers, got {found.usage!r:.80}")
        if not isinstance(found.steps, list | tuple):
            raise ValueError(f"run.{SERVICE}.steps: expected a list, got {found.steps!r:.80}")
        return found

    @classmethod
    def last_of(cls, runs: Iterable[Mapping[str, object]]) -> Outside:
        """Return the requests in the last ``run`` line with a ``service`` field; raise ValueError if it is invalid."""
        found = [cls.of(run[SERVICE]) for run in runs if SERVICE in run]
        return found[-1] if found else NONE_OUTSIDE

    @property
    def sums(self) -> dict[str, object]:
        """All fields except ``steps``, for the manifest."""
        return {name: value for name, value in self.to_json().items() if name != "steps"}

    @property
    def answers(self) -> Sequence[Mapping[str, object]]:
        """The answers to the requests, in the same format as an example's answers."""
        return answered_requests({"steps": self.steps})

    def to_json(self) -> dict[str, object]:
        """Return all fields as a dict for the ledger."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


NONE_OUTSIDE = Outside()


def joined(parts: Iterable[Outside]) -> Outside:
    """Combine the requests from several processes or shards."""
    found = [part for part in parts if part]
    if not found:
        return NONE_OUTSIDE
    return Outside(
        found[0].adapter,
        found[0].adapter_key,
        sum(part.requests for part in found),
        sum(part.during for part in found),
        total_usage(part.usage for part in found),
        [step for part in found for step in part.steps],
    )
