"""Ask a server of the Messages interface once, by the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pytest_lmeval.adapters.anthropic import AnthropicAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate
from tests.adapters.openai.asking import Outcome, shown
from tests.adapters.openai.scripted_server import ScriptedServer, Step

__all__ = ["answer", "ask", "refused"]


def ask(script: Sequence[Step], request: Generate | str = "2 + 2 =", **options: Any) -> tuple[Outcome, list[Any]]:
    """Return what became of a request, and the bodies that the server got."""
    asked = Generate(request) if isinstance(request, str) else request

    async def talk() -> tuple[Outcome, list[Any]]:
        async with ScriptedServer(script) as server:
            adapter = AnthropicAdapter("m", **{"base_url": server.base_url, "timeout": 5, **options})
            try:
                completion = await adapter.complete(asked)
                outcome = Outcome(None, repr(completion), len(server.requests), completion)
            except AdapterError as error:
                outcome = Outcome(error, shown(error, adapter), len(server.requests))
            finally:
                await adapter.aclose()
            return outcome, [seen.json for seen in server.requests]

    return asyncio.run(talk())


def answer(step: Step, request: Generate | str = "2 + 2 =", **options: Any) -> Completion:
    """Return the answer to a request that the server takes."""
    outcome, _ = ask([step], request, **options)
    assert outcome.completion is not None, outcome.error
    return outcome.completion


def refused(step: Step, request: Generate | str = "2 + 2 =", **options: Any) -> AdapterError:
    """Return the error that a request ends in."""
    outcome, _ = ask([step], request, **options)
    assert outcome.error is not None, outcome.completion
    return outcome.error
