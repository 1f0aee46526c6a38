"""Ask a scripted server once, and look at everything that a report of the outcome could show."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_lmeval.adapters.openai import OpenAIAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate

from .scripted_server import ScriptedServer, Step

__all__ = ["KEY", "PATH", "Outcome", "ask", "ask_elsewhere", "assert_no_key", "fails", "shown"]

KEY = "sk-CANARY-0123456789-abcdef"
PATH = "/v1/chat/completions"


@dataclass(frozen=True)
class Outcome:
    """What became of one request: the error, how it reads with local variables, and what the server saw."""

    error: AdapterError | None
    text: str
    requests: int
    completion: Completion | None = None


def ask(script: Sequence[Step], **options: Any) -> Outcome:
    """Ask a server that follows ``script`` once."""

    async def talk() -> Outcome:
        async with ScriptedServer(script) as server:
            adapter = OpenAIAdapter("m", **{"base_url": server.base_url, "timeout": 5, **options})
            try:
                completion = await adapter.complete(Generate("2 + 2 ="))
            except AdapterError as error:
                return Outcome(error, shown(error, adapter), len(server.requests))
            finally:
                await adapter.aclose()
            return Outcome(None, repr(completion), len(server.requests), completion)

    return asyncio.run(talk())


def shown(error: BaseException, *more: object) -> str:
    """Return everything that a report of ``error`` could show: chained tracebacks with local variables too."""
    lines = traceback.TracebackException.from_exception(error, capture_locals=True).format()
    contexts = (error.__context__, error.__cause__)
    return "".join(lines) + repr((error, str(error), error.args, contexts, vars(error), *more))


def fails(kind: type[AdapterError], script: Sequence[Step], *parts: str, requests: int = 1, **options: Any) -> Outcome:
    outcome = ask(script, **options)
    assert outcome.error is not None, outcome
    assert kind is type(outcome.error), outcome.error
    assert [] == [part for part in parts if part not in str(outcome.error)], str(outcome.error)
    assert "\n" not in str(outcome.error)
    assert requests == outcome.requests
    assert_no_key(outcome.text)
    return outcome


def assert_no_key(text: str) -> None:
    assert KEY.lower() not in text.lower()
    assert "0123456789" not in text


def ask_elsewhere(base_url: str) -> AdapterError:
    async def talk() -> AdapterError:
        adapter = OpenAIAdapter("m", base_url=base_url, timeout=60)
        with pytest.raises(AdapterError) as caught:
            await adapter.complete(Generate("2 + 2 ="))
        await adapter.aclose()
        return caught.value

    return asyncio.run(talk())
