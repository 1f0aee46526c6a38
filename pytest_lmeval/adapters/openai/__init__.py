"""The adapter ``openai:MODEL``: any server that speaks the chat or completions interface of OpenAI over HTTP.

A request goes through the modules in this order: :mod:`.options` and :mod:`.secret` once, then :mod:`.request`,
:mod:`.transport` (with :mod:`.redirects`, :mod:`.body` and :mod:`.faults`) and :mod:`.response`.
"""

from __future__ import annotations

from pytest_lmeval.adapters.openai.adapter import OpenAIAdapter

__all__ = ["OpenAIAdapter"]
