"""Reuse an adapter's answers from earlier runs."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.adapters.identity import Identity, identity_of, options_of
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.errors import AdapterError, LmevalError
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.records.cache import AnswerStore, Kept
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.types import Completion, Generate, Request

MODES = ("use", "read-only", "refresh", "sampled")


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The cache's folder and mode; the mode is one of MODES.

    ``use`` and ``sampled`` read cached answers, and store new answers. If a request has a temperature other than 0,
    ``use`` neither reads nor stores an answer. ``sampled`` reads and stores answers at any temperature, separately for
    each example and repeat. If the server chooses a request's temperature, ``use`` treats the request like ``sampled``.
    ``read-only`` never queries a model. ``refresh`` always queries the model, and stores the answers that ``use``
    stores.
    """

    folder: Path
    mode: str = "use"


class Cache:
    """The answer cache in one process of a run; it counts hits and the cost that they save, and is thread-safe.

    ``reading`` contains the think tags, which affect how the run parses answers. ``scrubber`` hides secrets in answers
    before the cache stores them.
    """

    def __init__(self, settings: CacheSettings, reading: str = "", scrubber: Scrubber | None = None) -> None:
        self.settings = settings
        self.reading = reading
        self.scrubber = Scrubber() if scrubber is None else scrubber
        self.store = AnswerStore(settings.folder, writes=settings.mode != "read-only")
        self.hits = self.misses = self.draws = 0
        self.saved_cost = 0.0
        self.oldest: float | None = None
        self._left_out: dict[str, None] = {}
        self._counting = threading.Lock()

    def of(self, adapter: Any) -> CachedAnswers | None:
        """Return the cached answers of ``adapter``, or None if the adapter opts out or its identity is uncertain."""
        if not AdapterFacts.of(adapter).cacheable:
            return None
        identity = identity_of(adapter)
        if not identity.is_sure:
            self._left_out[adapter_name(adapter)] = None
        return CachedAnswers(self, adapter, identity) if identity.is_sure or self.settings.mode == "read-only" else None

    def take(self, kept: Kept, *, is_draw: bool = False) -> None:
        """Count a cache hit."""
        with self._counting:
            self.hits += 1
            self.draws += is_draw
            self.saved_cost += (kept.answer.cost or 0.0) if isinstance(kept.answer, Completion) else 0.0
            self.oldest = kept.asked if self.oldest is None else min(self.oldest, kept.asked)

    def miss(self) -> None:
        """Count a cache miss."""
        with self._counting:
            self.misses += 1

    def facts(self) -> dict[str, object]:
        """Return the facts about the cache for the manifest, with this process's counts."""
        facts: dict[str, object] = {"mode": self.settings.mode, "hits": self.hits, "misses": self.misses}
        facts["saved_cost"] = self.saved_cost
        others = {
            "draws": self.draws,
            "oldest": "" if self.oldest is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.oldest)),
            "not_cached": list(self._left_out),
            "outdated": self.store.outdated,
            "failure": self.store.failure,
        }
        return {**facts, **{name: value for name, value in others.items() if value}}


class CachedAnswers:
    """Reads and stores one adapter's answers; their keys depend on the adapter's identity and the request.

    If the adapter's identity is uncertain, which only ``read-only`` allows, the answer to every request is an error.
    """

    def __init__(self, cache: Cache, adapter: Any, identity: Identity) -> None:
        self._cache = cache
        self._mode = cache.settings.mode
        self._name = adapter_name(adapter)
        self._is_sure = identity.is_sure
        self._adapter = f"{identity.key} {cache.reading}".encode("utf-8", "backslashreplace")
        self._temperature = options_of(adapter).get("temperature", 0)

    def find(self, request: Request) -> Answer | None:
        """Return the cached answer. Without an answer, return None, or an AdapterError in the mode ``read-only``."""
        kind = self._kind(request)
        if self._mode == "refresh" or (self._mode == "use" and not kind):
            return None
        if not self._is_sure:
            self._cache.miss()
            return AdapterError(
                f"--lm-cache-mode=read-only: the cache cannot identify {self._name}; give it the attribute fingerprint"
            )
        # In read-only mode, an answer may come from either storing mode.
        kinds = ("sampled", "use") if self._mode == "read-only" else (kind,)
        kept = next((found for each in kinds if (found := self._kept(request, each)) is not None), None)
        if kept is not None:
            self._cache.take(kept, is_draw=_is_draw(request))
            # A cached answer is free, but its token counts remain.
            return replace(kept.answer, cost=0.0) if isinstance(kept.answer, Completion) else kept.answer
        self._cache.miss()
        if self._mode == "read-only":
            return AdapterError(
                f"{_whose(request)} is not in the cache, and --lm-cache-mode=read-only sends no requests"
            )
        return None

    def keep(self, request: Request, answer: Answer) -> None:
        """Store a new answer, unless it is an error, or the mode does not allow its reuse."""
        kind = self._kind(request)
        if isinstance(answer, LmevalError) or not kind:
            return
        kept = self._cache.scrubber.scrub_answer(answer)
        self._cache.store.put(self._key(request, kind), kept, self._name)

    def _kind(self, request: Request) -> str:
        """Return the mode whose keys apply to the request, ``sampled`` or ``use``; "" means that no key applies."""
        if self._mode == "sampled" or _is_draw(request):
            return "sampled"
        return "" if self._is_sampled(request) else "use"

    def _kept(self, request: Request, kind: str) -> Kept | None:
        found = self._cache.store.get(self._key(request, kind))
        # A file may contain anything, so check the result.
        is_answer = found is not None and isinstance(found.answer, Completion) == isinstance(request, Generate)
        return found if is_answer else None

    def _key(self, request: Request, kind: str) -> str:
        digest = sha256(self._adapter)
        repeat, nth = getattr(request, "repeat", 0), getattr(request, "nth", 0)
        digest.update(f"{type(request).__name__} {repeat} {nth} {request_hash([request])}".encode("ascii"))
        if kind == "sampled":
            # A sample for one example must not serve another example with the same request.
            digest.update(f"\0{request.task}\0{request.id}".encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def _is_sampled(self, request: Request) -> bool:
        if not isinstance(request, Generate):
            return False
        return bool(request.options.get("temperature", self._temperature) != 0)


def _is_draw(request: Request) -> bool:
    """Return True if the server chooses the request's temperature, so that each answer may differ."""
    return isinstance(request, Generate) and request.options.get("temperature", 0) is None


def _whose(request: Request) -> str:
    return f"{request.task}: {request.id}" if request.task or request.id else "a request to a judge"
