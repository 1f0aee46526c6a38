"""The adapter ``litellm:MODEL``: services with other interfaces, through the package litellm.

MODEL is litellm's name for it: ``azure/DEPLOYMENT``, ``bedrock/MODEL``, ``vertex_ai/MODEL``, ``gemini/MODEL``.
"""

from __future__ import annotations

from pytest_lmeval.adapters.litellm.adapter import LiteLLMAdapter

__all__ = ["LiteLLMAdapter", "make"]

make = LiteLLMAdapter
"""Returns the adapter ``litellm:MODEL``, or ``litellm:``, which asks the model that each request names."""
