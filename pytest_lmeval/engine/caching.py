"""What one adapter has answered before, as far as that may be used again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name, made_with
from pytest_lmeval.engine.ask import Answer
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.records.cache import AnswerStore
from pytest_lmeval.redaction import redact_options
from pytest_lmeval.types import Completion, Generate, Request

MODES = ("use", "read-only", "refresh", "sampled")


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The folder of the cache, and one of MODES.

    ``use`` and ``sampled`` answer from it what it holds and keep what it does not; only ``sampled`` does so at a
    temperature other than 0, each repeat by itself. ``read-only`` asks no model. ``refresh`` asks, and keeps.
    """

    folder: Path
    mode: str = "use"


class Cache:
    """The cache of one process's part of a run; counts what it saved. ``reading`` is how texts are read: think tags."""

    def __init__(self, settings: CacheSettings, reading: str = "") -> None:
        self.settings = settings
        self.reading = reading
        self.store = AnswerStore(settings.folder, writes=settings.mode != "read-only")
        self.hits = self.misses = 0
        self.saved_cost = 0.0
        self.by_name: dict[str, None] = {}

    def of(self, adapter: Any) -> CachedAnswers | None:
        """Return the cached answers of ``adapter``; None of one whose answers are not the request's alone."""
        return CachedAnswers(self, adapter) if getattr(adapter, "cacheable", True) else None

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says of the cache; numbers are of this process."""
        facts: dict[str, Any] = {"mode": self.settings.mode, "hits": self.hits, "misses": self.misses}
        facts["saved_cost"] = self.saved_cost
        if self.by_name:
            facts["by_name_and_options_only"] = list(self.by_name)
        return {**facts, **({"failure": self.store.failure} if self.store.failure else {})}


class CachedAnswers:
    """Finds and keeps the answers of one adapter, by its name, its options, its model and the request."""

    def __init__(self, cache: Cache, adapter: Any) -> None:
        self._cache = cache
        self._mode = cache.settings.mode
        name = adapter_name(adapter)
        made: Mapping[str, Any] = {**made_with(adapter), **_own_options(adapter)}
        model = getattr(adapter, "fingerprint", None)
        if model is None:
            cache.by_name[name] = None
        content = json.dumps([name, redact_options(made), model, cache.reading], sort_keys=True, default=str)
        self._adapter = content.encode("utf-8", "backslashreplace")
        self._temperature = made.get("temperature", 0)

    def find(self, request: Request) -> Answer | None:
        """Return the answer to use; an AdapterError where none may be asked for; None where one is to be asked for."""
        if self._mode == "refresh" or (self._mode == "use" and self._is_sampled(request)):
            return None
        answer = self._cache.store.get(self._key(request))
        if answer is not None:
            self._cache.hits += 1
            self._cache.saved_cost += (answer.cost or 0.0) if isinstance(answer, Completion) else 0.0
            return answer
        self._cache.misses += 1
        if self._mode == "read-only":
            return AdapterError(f"not in the cache, and --lm-cache-mode=read-only asks no model: {_whose(request)}")
        return None

    def keep(self, request: Request, answer: Answer) -> None:
        """Keep an answer that was asked for, if it is one and may be used again."""
        if isinstance(answer, AdapterError) or (self._mode != "sampled" and self._is_sampled(request)):
            return
        self._cache.store.put(self._key(request), answer)

    def _key(self, request: Request) -> str:
        digest = sha256(self._adapter)
        repeat, nth = getattr(request, "repeat", 0), getattr(request, "nth", 0)
        digest.update(f"{type(request).__name__} {repeat} {nth} {request_hash([request])}".encode("ascii"))
        return digest.hexdigest()

    def _is_sampled(self, request: Request) -> bool:
        if not isinstance(request, Generate):
            return False
        return bool(request.options.get("temperature", self._temperature) != 0)


def _own_options(adapter: Any) -> Mapping[str, Any]:
    options = getattr(adapter, "options", None)
    return options if isinstance(options, Mapping) else {}


def _whose(request: Request) -> str:
    return f"{request.task}: {request.id}" if request.task or request.id else "a judge's question"
