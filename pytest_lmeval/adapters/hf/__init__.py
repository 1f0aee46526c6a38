"""The adapter ``hf:PATH_OR_NAME``: causal language models of the transformers library, on this machine.

Made once by :mod:`.options` and :mod:`.loading`. A request then goes through :mod:`.prompts` (text to
tokens), :mod:`.batches` (which go together) and :mod:`.generation` or :mod:`.scoring` (the model itself).
"""

from __future__ import annotations

from typing import Any

from pytest_lmeval.adapters.hf.adapter import HfAdapter
from pytest_lmeval.errors import UsageError

__all__ = ["HfAdapter", "make"]


def make(argument: str, **options: Any) -> HfAdapter:
    """Return the adapter ``hf:PATH_OR_NAME``."""
    if not argument:
        raise UsageError("adapter 'hf' needs a model folder or name: hf:PATH_OR_NAME")
    return HfAdapter(argument, **options)
