"""What a replica reports of its model, and whether two replicas have the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.adapters.identity import Identity
from pytest_lmeval.frozen import dataclass

ATTRIBUTES = (
    *("exact", "trusted", "tells_cost", "answers", "base_url", "known_secrets", "options", "request_options"),
    *("requests_per_minute", "tokens_per_minute"),
)
"""The attributes of an adapter that a run looks at; the adapter ``ray`` has those of the one that it copies."""


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """The model of one replica, as its process found it.

    ``attributes`` are those of ATTRIBUTES that its adapter has. ``generates`` and ``scores`` say what it can be asked
    for: completions, log-likelihoods. One that ``streams`` answers many requests at a time. ``version`` is that of this
    package there; ``node`` an address, ``pid`` the number of the process.
    """

    name: str
    identity: Identity
    fingerprint: str
    manifest: Mapping[str, Any]
    attributes: Mapping[str, Any]
    generates: bool
    scores: bool
    streams: bool
    version: str
    node: str
    pid: int

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"pid {self.pid} on node {self.node}"


def difference(first: ReplicaFacts, other: ReplicaFacts) -> str:
    """Return in what the model of ``other`` differs from that of ``first``; "" where it is the same."""
    for name in ("version", "name", "fingerprint", "manifest"):
        one, two = getattr(first, name), getattr(other, name)
        if one != two:
            what = "version of pytest-lmeval" if name == "version" else name
            return f"its {what} is {two!r:.200}, that of the first replica ({first.place}) is {one!r:.200}"
    if first.identity != other.identity:
        return (
            f"its source, options or attributes are not those of the first replica ({first.place}); "
            "an adapter with a fingerprint is known by that instead of its attributes"
        )
    return ""
