"""The contract of an adapter, the only model-specific code; :class:`.facts.AdapterFacts` has its attributes.

An adapter is any object with a ``name`` and one way to answer. It need not inherit from these classes, and may lack
every other member: ``facts`` is what reads adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from pytest_lmeval.types import BestEffort, Completion, Generate, LogLikelihood, LogProb, Request

ANY_OPTION = "*"
"""Among an adapter's ``request_options``: it takes whatever a single request has instead of the adapter's options."""


@runtime_checkable
class ModelAdapter(Protocol):
    """What every adapter has: the name that the leaderboard shows."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``vendor.v1``."""


class AnsweringAdapter(ModelAdapter, Protocol):
    """The ways to answer; the first of ``complete``, ``generate_requests`` and ``generate`` is used."""

    async def complete(self, request: Generate) -> Completion:
        """Return the answer to one request; many are in flight at once."""

    def generate_requests(self, requests: list[Generate]) -> Sequence[Completion]:
        """Return the answers to a batch, in order, with all that is known of each request."""

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return the answers to a batch of plain prompts, in order."""

    def loglikelihood(self, requests: list[LogLikelihood]) -> Sequence[LogProb]:
        """Return how probable each continuation is; if it is async, it gets lists of one request, many at a time."""

    def plan_window(self, requests: list[Request]) -> Sequence[Sequence[int]]:
        """Return which requests of a window, all of one kind, go together in a call, by their places, each once."""


class RunningAdapter(ModelAdapter, Protocol):
    """Members that a run calls, reads or sets while it goes on."""

    def check_selection(self, keys: Sequence[tuple[str, str]]) -> None:
        """Raise UsageError if it cannot answer every selected ``(task, id)``; called once, before the run."""

    def close(self) -> None:
        """Let go of what it holds; called once, after the run."""

    async def aclose(self) -> None:
        """Let go of what it holds; called once, after the run, in the event loop that ``complete`` ran in."""

    def as_judge(self) -> ModelAdapter:
        """Return the adapter that answers in its place if it is a judge."""

    @property
    def base_url(self) -> str:
        """Its address, for messages and the board; the address of the run's own endpoint is refused."""

    @property
    def is_ready(self) -> bool:
        """Whether it is known that the model of an async adapter answers: the first request does not go alone."""

    @property
    def fingerprint(self) -> str:
        """What distinguishes the model from others of its name, such as a hash of its weights."""

    @property
    def manifest(self) -> Mapping[str, object]:
        """What is known of the model (``id``, ``revision``, ``sha256``) for the board; ``remarks`` is a list."""

    think_tags: tuple[str, str] | None
    """Set by the run: the tags around thoughts, or None. If a prompt ends with the first, the answer begins with it."""
    time_limit_s: float
    """Set by the run of an async adapter: the seconds for a request, after which it raises AdapterTimeout itself."""
    cancelled_after_s: float
    """Set by the run of an async adapter without ``time_limit_s``: when the run cancels a request."""


class NamedModel(str):
    """The model that an application's client named; an adapter with a model of its own is asked without it."""

    __slots__ = ()


def without_best_effort(request: Generate, keep: Collection[str] = ()) -> Generate:
    """Return a request without the best-effort options that an adapter does not take."""
    if not request.options or ANY_OPTION in keep:
        return request
    options = {
        name: value for name, value in request.options.items() if name in keep or not isinstance(value, BestEffort)
    }
    return request if len(options) == len(request.options) else replace(request, options=options)
