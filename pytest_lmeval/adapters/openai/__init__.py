"""The adapter ``openai:MODEL``: any server that speaks the chat or completions interface of OpenAI over HTTP.

A request goes through the modules in this order: :mod:`.options` once, then :mod:`.request`,
:mod:`~pytest_lmeval.adapters.http.transport` (with what is beside it, and :mod:`.stream`) and :mod:`.response`.
"""

from __future__ import annotations

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter

__all__ = ["OpenAIAdapter", "make"]

make = OpenAIAdapter
"""Returns the adapter ``openai:MODEL``, or ``openai:``, which asks for the model that each request names."""
