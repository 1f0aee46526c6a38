"""The contract for adapters; :class:`.facts.AdapterFacts` lists their attributes.

An adapter is any object with an answering method; it need not inherit from the classes in this module. Other members
are optional, because only ``facts`` reads adapters' members.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_lmeval.types import BestEffort, Completion, Generate, LogLikelihood, LogProb, Request

if TYPE_CHECKING:
    from pytest_lmeval.records.tool_calls import Place, RecordedCall

ANY_OPTION = "*"
"""A member of an adapter's ``request_options``, which means that a request may override any option."""


@runtime_checkable
class ModelAdapter(Protocol):
    """An adapter's name, which the leaderboard shows."""

    @property
    def name(self) -> str:
        """The model's name, such as ``vendor.v1``."""


class AnsweringAdapter(ModelAdapter, Protocol):
    """Methods that answer requests; a run uses the first of ``complete``, ``generate_requests`` and ``generate``."""

    async def complete(self, request: Generate) -> Completion:
        """Answer one request; a run makes many calls concurrently."""

    def generate_requests(self, requests: list[Generate]) -> Sequence[Completion]:
        """Answer a batch of requests, in order."""

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Answer a batch of plain-text prompts, in order."""

    def loglikelihood(self, requests: list[LogLikelihood]) -> Sequence[LogProb]:
        """Return the log-probability of each continuation, in order; an async method receives one request per call."""

    def plan_window(self, requests: list[Request]) -> Sequence[Sequence[int]]:
        """Divide ``requests``, all of one kind, among calls; return lists that together contain each position once."""


class RunningAdapter(ModelAdapter, Protocol):
    """Optional members that a run calls, reads or sets."""

    def check_selection(self, keys: Sequence[tuple[str, str]]) -> None:
        """Raise UsageError if the adapter cannot answer every selected ``(task, id)``; called once, before the run."""

    def close(self) -> None:
        """Release resources; the run calls this once at its end."""

    async def aclose(self) -> None:
        """Release resources; the run calls this once at its end, in the event loop of ``complete``."""

    def as_judge(self) -> ModelAdapter:
        """Return the adapter that answers requests to the judge in place of this adapter."""

    def recorded_calls(self, task: str, example: str) -> Mapping[Place, RecordedCall]:
        """Return an example's recorded tool calls; a run then uses the recorded results, and calls no tool."""

    @property
    def base_url(self) -> str:
        """The server's address, for messages and the board; a run refuses the address of its own endpoint."""

    @property
    def unnamed_options(self) -> Collection[str]:
        """Options without a default for applications' requests; the server decides unless a request sets them."""

    @property
    def is_ready(self) -> bool:
        """True if an async adapter's model is known to answer; the run then does not send the first request alone."""

    @property
    def fingerprint(self) -> str:
        """A string that distinguishes models with the same name, such as a hash of the weights."""

    @property
    def manifest(self) -> Mapping[str, object]:
        """Facts about the model for the board, such as ``id``, ``revision``, ``sha256``, and a list of ``remarks``."""

    think_tags: tuple[str, str] | None
    """The tags around thoughts, or None; the run sets this attribute.

    If a prompt ends with the first tag, the answer repeats that tag.
    """
    time_limit_s: float
    """The number of seconds after which an async adapter must raise AdapterTimeout for a request; set by the run."""
    cancelled_after_s: float
    """The seconds after which the run cancels a request, set by the run if an async adapter has no ``time_limit_s``."""


class NamedModel(str):
    """The name of a model that an application's client requested; an adapter with a fixed model does not receive it."""

    __slots__ = ()


def without_best_effort(request: Generate, keep: Collection[str] = ()) -> Generate:
    """Drop best-effort options from a request, except options in ``keep``, which the adapter accepts."""
    if not request.options or ANY_OPTION in keep:
        return request
    options = {
        name: value for name, value in request.options.items() if name in keep or not isinstance(value, BestEffort)
    }
    return request if len(options) == len(request.options) else replace(request, options=options)
