"""The contract of adapters, the only model-specific code; :class:`.facts.AdapterFacts` lists their attributes.

An adapter is any object with a ``name`` and an answering method. An adapter need not inherit from these classes, and
may lack all other members, because only ``facts`` reads adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_lmeval.types import BestEffort, Completion, Generate, LogLikelihood, LogProb, Request

if TYPE_CHECKING:
    from pytest_lmeval.records.tool_calls import Place, RecordedCall

ANY_OPTION = "*"
"""In an adapter's ``request_options``, this text means that a request may override any option."""


@runtime_checkable
class ModelAdapter(Protocol):
    """The only member that every adapter must have: its name on the leaderboard."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``vendor.v1``."""


class AnsweringAdapter(ModelAdapter, Protocol):
    """The answering methods; a run uses the first of ``complete``, ``generate_requests`` and ``generate``."""

    async def complete(self, request: Generate) -> Completion:
        """Return the answer to one request; many calls run concurrently."""

    def generate_requests(self, requests: list[Generate]) -> Sequence[Completion]:
        """Return the answers to a batch of requests, in order."""

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return the answers to a batch of plain prompts, in order."""

    def loglikelihood(self, requests: list[LogLikelihood]) -> Sequence[LogProb]:
        """Return the log-probability of each continuation; an async method receives one request per call."""

    def plan_window(self, requests: list[Request]) -> Sequence[Sequence[int]]:
        """Divide a window's requests, all of one kind, into calls: lists that together contain each position once."""


class RunningAdapter(ModelAdapter, Protocol):
    """Optional members that a run calls, reads or sets."""

    def check_selection(self, keys: Sequence[tuple[str, str]]) -> None:
        """Raise UsageError unless the adapter can answer every selected ``(task, id)``; called once, before the run."""

    def close(self) -> None:
        """Release resources; the run calls this once at its end."""

    async def aclose(self) -> None:
        """Release resources; the run calls this once at its end, in the event loop of ``complete``."""

    def as_judge(self) -> ModelAdapter:
        """Return the adapter that answers a judge's requests in place of this adapter."""

    def recorded_calls(self, task: str, example: str) -> Mapping[Place, RecordedCall]:
        """Return the recorded calls of an example's tools; a run then uses the recorded results, and calls no tool."""

    @property
    def base_url(self) -> str:
        """The server's address, for messages and the board; a run refuses the address of its own endpoint."""

    @property
    def unnamed_options(self) -> Collection[str]:
        """Options without a default for applications' requests: such an option stays None, and the server decides."""

    @property
    def is_ready(self) -> bool:
        """True if an async adapter's model is known to answer, so the run need not send its first request alone."""

    @property
    def fingerprint(self) -> str:
        """A text that distinguishes models with the same name, such as a hash of the weights."""

    @property
    def manifest(self) -> Mapping[str, object]:
        """Facts about the model for the board: ``id``, ``revision``, ``sha256``, and a list of ``remarks``."""

    think_tags: tuple[str, str] | None
    """The tags around thoughts, or None, as set by the run.

    If a prompt ends with the first tag, the answer repeats that tag.
    """
    time_limit_s: float
    """The seconds after which an async adapter must raise AdapterTimeout for a request; the run sets this."""
    cancelled_after_s: float
    """The seconds after which a run cancels requests of an async adapter without ``time_limit_s``; set by the run."""


class NamedModel(str):
    """The model that an application's client named; an adapter with a fixed model does not receive it."""

    __slots__ = ()


def without_best_effort(request: Generate, keep: Collection[str] = ()) -> Generate:
    """Return a request without its best-effort options, except options in ``keep``, which the adapter accepts."""
    if not request.options or ANY_OPTION in keep:
        return request
    options = {
        name: value for name, value in request.options.items() if name in keep or not isinstance(value, BestEffort)
    }
    return request if len(options) == len(request.options) else replace(request, options=options)
