"""The adapter ``anthropic:MODEL``, for any server with Anthropic's Messages interface.

:mod:`.options` checks the options once. For each request, :mod:`.request` builds a body,
:mod:`~pytest_lmeval.adapters.http.transport` sends the body, :mod:`.stream` assembles a streamed reply, and
:mod:`.response` reads the reply.
"""

from __future__ import annotations

from pytest_lmeval.adapters.anthropic.adapter import AnthropicAdapter

__all__ = ["AnthropicAdapter", "make"]

make = AnthropicAdapter
"""Returns the adapter ``anthropic:MODEL``, or ``anthropic:``, which queries the model that each request names."""
