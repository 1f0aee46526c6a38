"""The contract of an adapter, the only model-specific code; :class:`.facts.AdapterFacts` has its attributes.

An adapter is any object with a ``name`` and one method that answers. It need not inherit from these classes, and may
lack every other member: only ``facts`` reads adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_lmeval.types import BestEffort, Completion, Generate, LogLikelihood, LogProb, Request

if TYPE_CHECKING:
    from pytest_lmeval.records.tool_calls import Place, RecordedCall

ANY_OPTION = "*"
"""In an adapter's ``request_options``: a single request may override any option."""


@runtime_checkable
class ModelAdapter(Protocol):
    """The member that every adapter has: the name for the leaderboard."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``vendor.v1``."""


class AnsweringAdapter(ModelAdapter, Protocol):
    """The answering methods; a run uses the first of ``complete``, ``generate_requests`` and ``generate``."""

    async def complete(self, request: Generate) -> Completion:
        """Return the answer to one request; many are in flight at once."""

    def generate_requests(self, requests: list[Generate]) -> Sequence[Completion]:
        """Return the answers to a batch of requests, in order."""

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return the answers to a batch of plain prompts, in order."""

    def loglikelihood(self, requests: list[LogLikelihood]) -> Sequence[LogProb]:
        """Return the log-probability of each continuation; an async method gets lists of one, many concurrently."""

    def plan_window(self, requests: list[Request]) -> Sequence[Sequence[int]]:
        """Return the calls for a window of requests of one kind, as lists of places; each place occurs once."""


class RunningAdapter(ModelAdapter, Protocol):
    """Members that a run calls, reads or sets."""

    def check_selection(self, keys: Sequence[tuple[str, str]]) -> None:
        """Raise UsageError if it cannot answer every selected ``(task, id)``; called once, before the run."""

    def close(self) -> None:
        """Release resources; called once, after the run."""

    async def aclose(self) -> None:
        """Release resources; called once, after the run, in the event loop of ``complete``."""

    def as_judge(self) -> ModelAdapter:
        """Return the adapter that answers a judge's requests in its place."""

    def recorded_calls(self, task: str, example: str) -> Mapping[Place, RecordedCall]:
        """Return the recorded calls of an example's tools; a run then gives back their results, and calls no tool."""

    @property
    def base_url(self) -> str:
        """The server's address, for messages and the board; a run refuses the address of its own endpoint."""

    @property
    def unnamed_options(self) -> Collection[str]:
        """Options whose default applications' requests do not get: they are None then, and left to the server."""

    @property
    def is_ready(self) -> bool:
        """True if the model of an async adapter is known to answer: the first request need not go alone."""

    @property
    def fingerprint(self) -> str:
        """A text that distinguishes models of one name, such as a hash of the weights."""

    @property
    def manifest(self) -> Mapping[str, object]:
        """Facts of the model (``id``, ``revision``, ``sha256``) for the board; ``remarks`` is a list."""

    think_tags: tuple[str, str] | None
    """Set by the run: the tags around thoughts, or None. If a prompt ends with the first, the answer begins with it."""
    time_limit_s: float
    """Set by the run of an async adapter: the seconds for a request, after which the adapter raises AdapterTimeout."""
    cancelled_after_s: float
    """Set by the run of an async adapter without ``time_limit_s``: the seconds after which it cancels a request."""


class NamedModel(str):
    """The model that an application's client named; an adapter with its own model does not get it."""

    __slots__ = ()


def without_best_effort(request: Generate, keep: Collection[str] = ()) -> Generate:
    """Return a request without the best-effort options that an adapter does not take; ``keep`` names those it takes."""
    if not request.options or ANY_OPTION in keep:
        return request
    options = {
        name: value for name, value in request.options.items() if name in keep or not isinstance(value, BestEffort)
    }
    return request if len(options) == len(request.options) else replace(request, options=options)
