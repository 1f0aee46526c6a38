"""The adapter ``hf:PATH_OR_NAME``, for causal language models of the transformers library, on this machine.

:mod:`.options` checks the options and :mod:`.loading` loads the model once. For each call, :mod:`.prompts` converts
requests into tokens, :mod:`.batches` forms batches, and :mod:`.generation` or :mod:`.scoring` runs the model.
"""

from __future__ import annotations

from pytest_lmeval.adapters.hf.adapter import HfAdapter

__all__ = ["HfAdapter", "make"]

make = HfAdapter
"""Returns the adapter ``hf:PATH_OR_NAME``."""
