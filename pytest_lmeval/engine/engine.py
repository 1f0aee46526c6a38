"""Answers one example at a time from batches that were planned for all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from pytest_lmeval.engine.ask import Answer, ask
from pytest_lmeval.errors import AdapterError, LmevalError
from pytest_lmeval.types import Request, Response

__all__ = ["DEFAULT_BATCH_SIZE", "Engine"]

DEFAULT_BATCH_SIZE = 8


class Engine:
    """Stands between the examples, which are scored one by one, and the adapter, which is asked in batches.

    ``plan`` says once which keys belong together; ``respond`` asks a key's whole batch when its first key is wanted
    and hands out the rest from memory. What it holds is at most the batches that are under way.
    """

    def __init__(
        self,
        adapter: Any,
        *,
        batch_size: int = DEFAULT_BATCH_SIZE,
        passthrough: tuple[type[BaseException], ...] = (),
    ) -> None:
        self.adapter = adapter
        self.batch_size = batch_size
        self._passthrough = passthrough
        self._batches: dict[Hashable, Sequence[Hashable]] = {}
        self._answers: dict[Hashable, list[Answer]] = {}

    def plan(self, batches: Iterable[Sequence[Hashable]]) -> None:
        """Say which keys to ask together; a key outside the plan is asked alone."""
        self._batches = {key: batch for batch in batches for key in batch}

    def respond(self, key: Hashable, requests_of: Callable[[Any], Sequence[Request]]) -> list[Response]:
        """Return the responses to the requests of ``key``; raise the AdapterError of the first that has none.

        ``requests_of(key)`` is called for every key of the batch; where it raises, only that key is affected.
        """
        if key not in self._answers:
            self._ask(self._batches.pop(key, (key,)), requests_of)
        responses: list[Response] = []
        for answer in self._answers.pop(key):
            if isinstance(answer, AdapterError):
                raise answer
            responses.append(answer)
        return responses

    def _ask(self, batch: Sequence[Hashable], requests_of: Callable[[Any], Sequence[Request]]) -> None:
        wanted: list[tuple[Hashable, Request]] = []
        for key in batch:
            self._batches.pop(key, None)
            self._answers[key] = []
            try:
                wanted += [(key, request) for request in requests_of(key)]
            except LmevalError as error:
                self._answers[key] = [AdapterError(str(error))]
            except Exception as error:
                self._answers[key] = [AdapterError(f"rendering raised {type(error).__name__}: {error}")]
        for start in range(0, len(wanted), self.batch_size):
            chunk = wanted[start : start + self.batch_size]
            answers = ask(self.adapter, [request for _, request in chunk], self._passthrough)
            for (key, _), answer in zip(chunk, answers, strict=True):
                self._answers[key].append(answer)
