"""The adapter ``hf:PATH_OR_NAME``: causal language models of the transformers library, on this machine.

:mod:`.options` and :mod:`.loading` make it once. A request then goes through :mod:`.prompts` (text to tokens),
:mod:`.batches`, and :mod:`.generation` or :mod:`.scoring` (the model).
"""

from __future__ import annotations

from pytest_lmeval.adapters.hf.adapter import HfAdapter

__all__ = ["HfAdapter", "make"]

make = HfAdapter
"""Returns the adapter ``hf:PATH_OR_NAME``."""
