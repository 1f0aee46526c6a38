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
``hostable``
    True if an async adapter survives pickling: it may then run in a process of its own.
``forwards``
    True if ``complete`` takes requests of applications that go to its server as they are, ``http.forward.Forward``.
``takes_messages``
    True if applications may ask it by Anthropic's Messages interface, at ``lm.base_url``.
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

from typing import Protocol, runtime_checkable

ANY_OPTION = "*"
"""Among an adapter's ``request_options``: it takes whatever a single request has in place of the adapter's options."""


@runtime_checkable
class ModelAdapter(Protocol):
    """What every adapter has: the name that the leaderboard shows."""

    @property
    def name(self) -> str:
        """The model's name, e.g. ``vendor.v1``."""
