"""The adapter itself: one attempt per call; limits, retries and concurrency are the engine's."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from pytest_lmeval.adapters.http.adapter import raised
from pytest_lmeval.adapters.http.faults import AttemptTimeout, one_line, refused, retry_after
from pytest_lmeval.adapters.http.models import Prices, asked_model, check_model, priced, read_prices
from pytest_lmeval.adapters.http.reply import Document
from pytest_lmeval.adapters.http.secret import read_key
from pytest_lmeval.adapters.litellm.options import read_options
from pytest_lmeval.adapters.openai.request import request_fields
from pytest_lmeval.adapters.openai.response import completion
from pytest_lmeval.adapters.protocol import ANY_OPTION, without_best_effort
from pytest_lmeval.adapters.resolve import making
from pytest_lmeval.errors import AdapterError, TransientError, UsageError
from pytest_lmeval.numbers import is_number
from pytest_lmeval.redaction import Scrubber, is_secret_name
from pytest_lmeval.types import Completion, Generate

_LOCAL_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"
_SHORTEST_SECRET = 8
_LOGGING_S = 2.0


class LiteLLMAdapter:
    """A model that the package litellm reaches.

    The options are those of :class:`~pytest_lmeval.adapters.litellm.options.LiteLLMOptions`. Raise UsageError for one
    that cannot be used, a key that is missing, or without litellm.
    """

    request_options = frozenset({ANY_OPTION})

    def __init__(self, model: str, /, **options: Any) -> None:
        self._options = read_options(options)
        check_model("litellm", model, self._options)
        self._key = read_key("litellm", self._options.api_key_env, bool(self._options.api_key_env))
        if self._key.stands_in((model, self._options)):
            raise UsageError("adapter 'litellm': the API key itself is in the model's name or in an option")
        # litellm finds keys by itself, each provider's in variables of its own.
        found = [value for name, value in os.environ.items() if is_secret_name(name) and len(value) >= _SHORTEST_SECRET]
        self.known_secrets = tuple({*self._key.known(), *found})
        self._scrubber = Scrubber([*self.known_secrets])
        self._litellm = None if making().offline else _imported()
        self._model = model
        self._prices: Prices = read_prices()
        self.model_by_request = not model
        self.name = model or "litellm"
        self.base_url = self._options.base_url
        self.options = self._options.public()
        self.manifest: dict[str, str] = {"id": model} if model else {}
        self.requests_per_minute = self._options.requests_per_minute
        self.tokens_per_minute = self._options.tokens_per_minute

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    async def complete(self, request: Generate) -> Completion:
        """Ask once and return the completion.

        Raise TransientError where asking again may help (408, 409, 429, 5xx, no connection, timeouts), AdapterError
        where it would not.
        """
        return raised(await self._completion(without_best_effort(request)))

    async def aclose(self) -> None:
        """Close the connections that litellm keeps, and let it end what it logs beside the answers."""
        if self._litellm is None:
            return
        with suppress(Exception):  # other versions of litellm log in other ways, and nothing here depends on it
            worker = import_module("litellm.litellm_core_utils.logging_worker").GLOBAL_LOGGING_WORKER
            # Without it Python warns of coroutines that nobody awaited, in whichever test comes next. A task of litellm
            # puts the last of them into the queue at its next turn; `flush` does not wait for what was taken out of it.
            await asyncio.sleep(0)
            async with asyncio.timeout(_LOGGING_S):
                await worker._queue.join()
        if close := getattr(self._litellm, "close_litellm_async_clients", None):
            await close()

    async def _completion(self, request: Generate) -> Completion | AdapterError:
        # Errors leave as values: a traceback through here would show what litellm was given, the key with it.
        begun, model = time.perf_counter(), self.name
        try:
            model = asked_model("litellm", self._model, request)
            fields = request_fields(model, self._options, request)
            async with asyncio.timeout(self._options.timeout):
                reply = await self._ask(fields)
            return self._answer(model, reply, (time.perf_counter() - begun) * 1000)
        except TimeoutError:
            return AttemptTimeout(f"litellm:{model}: no response in {self._options.timeout:g} s")
        except AdapterError as error:
            return error
        except Exception as error:
            return self._error(model, error)

    async def _ask(self, fields: dict[str, object]) -> Any:
        self._litellm = litellm = self._litellm or _imported()
        given = {"api_base": self._options.base_url, "api_key": self._key.header() if self._key else ""}
        # Retries are counted and waited for by the engine alone.
        return await litellm.acompletion(
            **fields,
            **{name: value for name, value in given.items() if value},
            timeout=self._options.timeout,
            num_retries=0,
            max_retries=0,
        )

    def _answer(self, model: str, reply: Any, latency_ms: float) -> Completion:
        fields = reply.model_dump()
        where = f"litellm:{model}"
        options = priced(self._options, self._model, model, self._prices)
        text = self._scrubber.scrub(reply.model_dump_json())
        found = completion(Document(fields, where, text.encode(), self._key), options, latency_ms)
        if found.cost is None and options.price_input is None:
            found = replace(found, cost=self._cost(model, reply))
        if isinstance(fields.get("model"), str):
            self.manifest.setdefault("revision", one_line(fields["model"]))
        return found

    def _cost(self, model: str, reply: Any) -> float | None:
        """Return the dollars by litellm's list of prices; None for a model that is not in it."""
        try:
            library: Any = self._litellm
            cost = library.completion_cost(completion_response=reply, model=model)
        except Exception:  # it raises Exception itself
            return None
        return float(cost) if is_number(cost) and cost > 0 else None

    def _error(self, model: str, error: Exception) -> AdapterError:
        """Return an exception of litellm as one of ours, by its status; the text has no secret."""
        kind = type(error).__name__
        status = getattr(error, "status_code", None)
        text = one_line(self._scrubber.scrub(str(error)))
        where = f"litellm:{model}: {kind}"
        if kind == "Timeout":
            return AttemptTimeout(f"{where}: {text}")
        if kind == "APIConnectionError":
            return TransientError(f"{where}: {text}")
        if not isinstance(status, int):
            return AdapterError(f"{where}: {text}")
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        return refused(f"{where} (status {status})", status, text.encode(), retry_after(headers))


def _imported() -> Any:
    """Return litellm, which otherwise fetches a list of prices while it is imported."""
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
