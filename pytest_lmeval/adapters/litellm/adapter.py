"""The adapter ``litellm``.

Each call of ``complete`` makes one attempt; the engine retries calls, limits their rate, and runs them concurrently.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from pytest_lmeval.adapters.http.adapter import raised
from pytest_lmeval.adapters.http.faults import AttemptTimeout, one_line, refused, retry_after, with_hint
from pytest_lmeval.adapters.http.models import ServerModel
from pytest_lmeval.adapters.http.reply import Document
from pytest_lmeval.adapters.litellm.options import LiteLLMOptions, read_options
from pytest_lmeval.adapters.openai.request import request_fields
from pytest_lmeval.adapters.openai.response import completion
from pytest_lmeval.adapters.protocol import ANY_OPTION, without_best_effort
from pytest_lmeval.adapters.resolve import making
from pytest_lmeval.errors import AdapterError, TransientError, UsageError
from pytest_lmeval.numbers import is_number
from pytest_lmeval.redaction import Scrubber, is_secret_name
from pytest_lmeval.types import MEDIA_KINDS, Completion, Generate

_LOCAL_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
_SHORTEST_SECRET = 8
_LOGGING_S = 2.0
_REMEDIES = {"temperature": "temperature=default"}


class LiteLLMAdapter(ServerModel[LiteLLMOptions]):
    """A model that the package litellm queries; :class:`LiteLLMOptions` describes the options.

    The constructor raises UsageError for an unusable option, or if the API key or litellm is missing.
    """

    kind = "litellm"
    request_options = frozenset({ANY_OPTION})
    media = frozenset(MEDIA_KINDS)

    def __init__(self, model: str, /, **options: Any) -> None:
        super().__init__(model, read_options(options))
        # litellm finds keys by itself, in each provider's environment variables.
        found = [value for name, value in os.environ.items() if is_secret_name(name) and len(value) >= _SHORTEST_SECRET]
        self.known_secrets = tuple({*self._key.known(), *found})
        self._scrubber = Scrubber([*self.known_secrets])
        self._litellm = None if making().offline else _imported()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def complete(self, request: Generate) -> Completion:
        """Send the request once and return the completion.

        Raise TransientError if a retry may help (408, 409, 429, 5xx, no connection, timeouts), otherwise AdapterError.
        """
        return raised(await self._completion(without_best_effort(request)))

    async def aclose(self) -> None:
        """Close litellm's connections and wait for its logging."""
        if self._litellm is None:
            return
        with suppress(Exception):  # other versions of litellm log differently, and nothing depends on it
            worker = import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
            # Otherwise a later test gets Python's warning about a coroutine that was never awaited. A litellm task
            # queues the last coroutine when the task next runs; `flush` does not wait for coroutines that have left the
            # queue.
            await asyncio.sleep(0)
            async with asyncio.timeout(_LOGGING_S):
                await worker._queue.join()
        if close := getattr(self._litellm, "close_litellm_async_clients", None):
            await close()

    async def _completion(self, request: Generate) -> Completion | AdapterError:
        # Return errors as values: a traceback through this frame would show litellm's arguments, including the key.
        begun, model = time.perf_counter(), self.name
        try:
            model = self._asked_model(request)
            fields = request_fields(model, self._options, request)
            async with asyncio.timeout(self._options.timeout):
                reply = await self._ask(fields)
            return self._answer(model, reply, (time.perf_counter() - begun) * 1000)
        except TimeoutError:
            return AttemptTimeout(f"litellm:{model}: no response in {self._options.timeout:g} s")
        except AdapterError as error:
            return error
        except Exception as error:
            return with_hint(self._error(model, error), request, _REMEDIES)

    async def _ask(self, fields: dict[str, object]) -> Any:
        self._litellm = litellm = self._litellm or _imported()
        given = {"api_base": self._options.base_url, "api_key": self._key.header() if self._key else ""}
        # The engine alone counts retries and waits for them.
        return await litellm.acompletion(
            **fields,
            **{name: value for name, value in given.items() if value},
            timeout=self._options.timeout,
            num_retries=0,
            max_retries=0,
        )

    def _answer(self, model: str, reply: Any, latency_ms: float) -> Completion:
        fields = reply.model_dump()
        options = self._priced(model)
        text = self._scrubber.scrub(reply.model_dump_json())
        found = completion(Document(fields, f"litellm:{model}", text.encode(), self._key), options, latency_ms)
        if found.cost is None and options.price_input is None:
            found = replace(found, cost=self._cost(model, reply))
        if isinstance(fields.get("model"), str):
            self.manifest.setdefault("revision", one_line(fields["model"]))
        return found

    def _cost(self, model: str, reply: Any) -> float | None:
        """Return the cost in dollars from litellm's price list, or None if the list does not contain the model."""
        try:
            library: Any = self._litellm
            cost = library.completion_cost(completion_response=reply, model=model)
        except Exception:  # it raises Exception itself
            return None
        return float(cost) if is_number(cost) and cost > 0 else None

    def _error(self, model: str, error: Exception) -> AdapterError:
        """Convert litellm's exception into the kind of AdapterError that matches its status; hide secrets."""
        kind = type(error).__name__
        status = getattr(error, "status_code", None)
        text = one_line(self._scrubber.scrub(str(error)))
        where = f"litellm:{model}: {kind}"
        if isinstance(status, int) and kind not in ("Timeout", "APIConnectionError"):
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            return refused(f"{where} (status {status})", status, text.encode(), retry_after(headers))
        classes = {"Timeout": AttemptTimeout, "APIConnectionError": TransientError}
        return classes.get(kind, AdapterError)(f"{where}: {text}")


def _imported() -> Any:
    """Import litellm, but prevent it from downloading a price list."""
    mine = _LOCAL_PRICES not in os.environ
    if mine:
        os.environ[_LOCAL_PRICES] = "True"
    try:
        litellm: Any = import_module("litellm")
    except ImportError as error:
        raise UsageError(
            f"adapter 'litellm' needs litellm, which cannot be imported ({error}): pip install 'pytest-lmeval[litellm]'"
        ) from error
    finally:
        if mine:
            del os.environ[_LOCAL_PRICES]
    litellm.suppress_debug_info = True  # it prints advice for each error
    return litellm
