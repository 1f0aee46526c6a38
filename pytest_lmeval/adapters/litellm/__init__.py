"""The adapter ``litellm:MODEL``, which uses the package litellm to query services with other interfaces.

MODEL is litellm's name for the model, such as ``azure/DEPLOYMENT``, ``bedrock/MODEL``, ``vertex_ai/MODEL`` or
``gemini/MODEL``.
"""

from __future__ import annotations

from pytest_lmeval.adapters.litellm.adapter import LiteLLMAdapter

__all__ = ["LiteLLMAdapter", "make"]

make = LiteLLMAdapter
"""Returns the adapter ``litellm:MODEL``, or ``litellm:``, which queries the model that each request names."""
