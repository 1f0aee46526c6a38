"""The adapter ``litellm:MODEL``: services of other interfaces, by the package litellm.

MODEL is litellm's name for it: ``azure/DEPLOYMENT``, ``bedrock/MODEL``, ``vertex_ai/MODEL``, ``gemini/MODEL``.
"""

from __future__ import annotations

from typing import Any

from pytest_lmeval.adapters.litellm.adapter import LiteLLMAdapter
from pytest_lmeval.errors import UsageError

__all__ = ["LiteLLMAdapter", "make"]


def make(argument: str, **options: Any) -> LiteLLMAdapter:
    """Return the adapter ``litellm:MODEL``."""
    if not argument.strip() or not argument.isprintable():
        raise UsageError("adapter 'litellm' needs the name of a model: litellm:PROVIDER/MODEL")
    return LiteLLMAdapter(argument, **options)
