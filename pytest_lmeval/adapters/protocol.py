"""What an adapter is: the only model-specific code.

An adapter has a ``name`` and one way to answer; the first of these that it has is used::

    async def complete(self, request: Generate) -> Completion                       one request, awaited
    def generate_requests(self, requests: list[Generate]) -> list[Completion]       a batch, with the full requests
    def generate(self, prompts: Sequence[str]) -> list[str]                         a batch of plain prompts

Any may also have ``loglikelihood(requests: list[LogLikelihood]) -> list[LogProb]``. It may be async: it then gets lists
of one request, many at a time. Optional attributes:

``exact``
    True if the same input always gives the same output.
``answers``
    False if it answers nothing: a run of examples that need an answer is then refused before it begins.
``trusted``
    True if the code it writes is ours, so that it may run in the best sandbox there is, whatever level is asked for.
``tells_cost``
    False if its answers never have a ``cost``.
``requests_per_minute``, ``tokens_per_minute``
    Numbers: an async adapter is not asked faster.
``base_url``
    Its address, for messages.
``requests_in_flight``
    How many requests an async adapter wants to have in flight, instead of ``--lm-concurrency``.
``is_ready``
    True if it is known that the model of an async adapter answers: the first request does not go alone.
``time_limit_s``
    Set by the run, where an async adapter has such an attribute: the seconds for one attempt at one request. The
    adapter then raises AdapterTimeout itself, as it knows when the model begins with a request.
``cancelled_after_s``
    Set by the run, where an async adapter has such an attribute and no ``time_limit_s``: the seconds after which it
    cancels an attempt. The adapter need not watch over a longer time itself.
``hostable``
    True if an async adapter survives pickling: it may then run in a process of its own.
``forwards``
    True if ``complete`` takes requests of applications that go to its server as they are, ``http.forward.Forward``.
``model_by_request``
    True if it has no model of its own, and asks for the one that each request has in its ``options``.
``takes_messages``
    True if applications may ask it by Anthropic's Messages interface, at ``lm.base_url``.
``request_window``
    How many requests a batch adapter wants to know together, instead of a batch of ``--lm-batch-size`` examples. With
    the method ``plan_window(requests) -> list[list[int]]`` it says which of them go together, by their places, each
    once; they are all ``Generate`` or all ``LogLikelihood``. Each list is then asked in a call of its own, in that
    order. Without the method all are asked in one call.
``think_tags``
    Set by the run, where there is such an attribute: the tags around thoughts, or None. An adapter that knows that its
    prompt ends with the opening tag puts it before the text.
``request_options``
    The names of the options that it takes from a single request, in ``Generate.options``; ``"*"`` among them: any. Only
    one that takes any gets, from an application's client, tools with more than name, description and parameters.
``manifest``
    A mapping of what is known of the model: ``id``, ``revision``, ``sha256``.
``known_secrets``
    A list of texts that a run hides in its cache, journal, reports and messages, and an application sees.
``check_selection(keys)``
    Called once before the run with every selected ``(task, id)``; raises UsageError if it cannot answer them.
``close()``, ``async aclose()``
    Called once after the run; ``aclose`` in the event loop that ``complete`` ran in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from pytest_lmeval.types import Generate, Wish

ANY_OPTION = "*"
"""Among an adapter's ``request_options``: it takes whatever a single request has instead of the adapter's options."""


class NamedModel(str):
    """The model that an application's client named; an adapter with a model of its own is asked without it."""

    __slots__ = ()


def without_wishes(request: Generate, keep: Iterable[str] = ()) -> Generate:
    """Return a request without the wishes among its options, but for those whose names are to be kept."""
    if not request.options:
        return request
    names = frozenset(keep)
    options = {name: value for name, value in request.options.items() if name in names or not isinstance(value, Wish)}
    return request if len(options) == len(request.options) else replace(request, options=options)


def as_taken(request: Generate, adapter: object) -> Generate:
    """Return a request without the wishes that ``adapter`` does not take from a single request."""
    taken = frozenset(getattr(adapter, "request_options", ()))
    return request if ANY_OPTION in taken or not request.options else without_wishes(request, taken)


@runtime_checkable
class ModelAdapter(Protocol):
    """What every adapter has: the name that the leaderboard shows."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``vendor.v1``."""
