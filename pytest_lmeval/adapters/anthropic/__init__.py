"""The adapter ``anthropic:MODEL``: any server that speaks Anthropic's Messages interface over HTTP.

A request goes through the modules in this order: :mod:`.options` once, then :mod:`.request`,
:mod:`~pytest_lmeval.adapters.http.transport` (with what is beside it, and :mod:`.stream`) and :mod:`.response`.
"""

from __future__ import annotations

from pytest_lmeval.adapters.anthropic.adapter import AnthropicAdapter

__all__ = ["AnthropicAdapter", "make"]

make = AnthropicAdapter
"""Returns the adapter ``anthropic:MODEL``, or ``anthropic:``, which asks for the model that each request names."""
