"""The adapter ``openai:MODEL``: any server with the chat or completions interface of OpenAI.

:mod:`.options` checks the options once. :mod:`.request` builds a body, :mod:`~pytest_lmeval.adapters.http.transport`
sends it, :mod:`.stream` assembles events, and :mod:`.response` reads the reply.
"""

from __future__ import annotations

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter

__all__ = ["OpenAIAdapter", "make"]

make = OpenAIAdapter
"""Returns the adapter ``openai:MODEL``, or ``openai:``, which asks the model that each request names."""
