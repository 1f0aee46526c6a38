"""The adapter ``openai:MODEL``, for any server with OpenAI's chat or completions interface.

:mod:`.options` checks the options once. For each request, :mod:`.request` builds a body,
:mod:`~pytest_lmeval.adapters.http.transport` sends the body, :mod:`.stream` assembles a streamed reply, and
:mod:`.response` reads the reply.
"""

from __future__ import annotations

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter

__all__ = ["OpenAIAdapter", "make"]

make = OpenAIAdapter
"""Returns the adapter ``openai:MODEL``, or ``openai:``, which queries the model that each request names."""
