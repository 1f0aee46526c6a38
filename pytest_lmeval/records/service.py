"""Represent requests outside of examples, which the ``run`` line of a ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.board import SERVICE
from pytest_lmeval.leaderboard.details import answered_requests
from pytest_lmeval.numbers import is_count, is_number, total_usage

OUTSIDE = ("", "")
"""The task and the id of a request that belongs to no example."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Requests outside of examples; false without any requests.

    ``during`` is the number of requests that arrived while examples ran. ``adapter`` and ``adapter_key`` identify the
    model, and ``usage`` is the sum over all ``steps``.
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
        """Return the requests in the field ``service`` of a ``run`` line; raise ValueError for an invalid field."""
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
        """Return the requests of the last ``run`` line that has requests; raise ValueError for an invalid field."""
        found = [cls.of(run[SERVICE]) for run in runs if SERVICE in run]
        return found[-1] if found else NONE_OUTSIDE

    @property
    def sums(self) -> dict[str, object]:
        """All fields except the steps, for the manifest."""
        return {name: value for name, value in self.to_json().items() if name != "steps"}

    @property
    def answers(self) -> Sequence[Mapping[str, object]]:
        """The answers to the requests, in the format of an example's answers."""
        return answered_requests({"steps": self.steps})

    def to_json(self) -> dict[str, object]:
        """Return the fields in ledger format."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


NONE_OUTSIDE = Outside()


def joined(parts: Iterable[Outside]) -> Outside:
    """Return the requests of several processes or shards as one."""
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
