"""The adapter ``anthropic:MODEL``: any server with Anthropic's Messages interface.

:mod:`.options` checks the options once. :mod:`.request` builds a body, :mod:`~pytest_lmeval.adapters.http.transport`
sends it, :mod:`.stream` assembles events, and :mod:`.response` reads the reply.
"""

from __future__ import annotations

from pytest_lmeval.adapters.anthropic.adapter import AnthropicAdapter

__all__ = ["AnthropicAdapter", "make"]

make = AnthropicAdapter
"""Returns the adapter ``anthropic:MODEL``, or ``anthropic:``, which asks the model that each request names."""
