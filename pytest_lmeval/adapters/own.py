"""What an adapter of a user's own has to keep to, as far as that can be seen before anything is asked."""

from __future__ import annotations

import inspect
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.registry import wrong_arguments

__all__ = ["check_own"]

_TAKES = {
    "complete": "complete(self, request): one request",
    "generate_requests": "generate_requests(self, requests): a list of requests",
    "generate": "generate(self, prompts): a list of texts",
    "loglikelihood": "loglikelihood(self, requests): a list of requests",
}
_BATCHES = ("generate_requests", "generate")


def check_own(adapter: Any, spec: str) -> None:
    """Raise UsageError for a method that no request could be answered by: by its kind, or what it takes."""
    for name, takes in _TAKES.items():
        method = getattr(adapter, name, None)
        if not callable(method):
            continue
        if name in _BATCHES and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)):
            raise UsageError(
                f"adapter {spec!r}: {name} is async, and is not awaited: write `async def complete(self, request)`, "
                "which returns the answer to one request"
            )
        if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
            raise UsageError(f"adapter {spec!r}: {name} is a generator: return the answer instead of yielding it")
        if wrong := wrong_arguments(method, 1):
            raise UsageError(f"adapter {spec!r}: {name} cannot be called: {wrong}; expected {takes}")
