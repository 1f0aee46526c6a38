"""The adapter ``none``, without a model, for eval functions that do not query a model."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate


def make(argument: str) -> NoAdapter:
    """Return the adapter ``none``."""
    if argument:
        raise UsageError(f"adapter 'none' takes no argument, got {argument!r:.80}")
    return NoAdapter()


class NoAdapter:
    """An adapter without a model."""

    name = "none"
    answers = False

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return an error for each request."""
        return [AdapterError("--lm-adapter=none has no model; name one with --lm-adapter=SPEC") for _ in requests]
