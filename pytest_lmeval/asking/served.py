"""Answer another process's requests with an adapter; that process decides on retries."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name, is_ours, member, members, method, tell
from pytest_lmeval.adapters.identity import REPLICATED, ReplicaFacts, identity_of
from pytest_lmeval.adapters.resolve import resolve_adapter
from pytest_lmeval.asking.ask import Answer, ask, check_answer, unusable
from pytest_lmeval.asking.attempts import outcome
from pytest_lmeval.asking.batching import is_of_several
from pytest_lmeval.asking.windows import planned_calls
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.loading import default_registry
from pytest_lmeval.project import register_project_plugins
from pytest_lmeval.types import LogLikelihood, Request


class Served:
    """Creates the adapter ``spec`` with ``options`` for a project folder, and answers requests on ``node``.

    The constructor raises UsageError if it cannot create the adapter. A batch adapter receives one batch at a time, in
    order of arrival.
    """

    def __init__(self, spec: str, options: Mapping[str, object], project: str | None, node: str) -> None:
        registry, folder = default_registry(), None if project is None else Path(project)
        if folder is not None:
            register_project_plugins(registry, folder)
        self._adapter = resolve_adapter(spec, registry, options, folder)
        self._calls = ThreadPoolExecutor(1)
        self._awaits_logprobs = AdapterFacts.of(self._adapter).awaits_logprobs
        self.facts = _facts(self._adapter, node)

    async def answer(self, requests: Sequence[Request], think_tags: tuple[str, str] | None) -> list[Answer]:
        """Return one answer per request, in order; do not separate thoughts from text."""
        tell(self._adapter, "think_tags", think_tags)
        if self.facts.streams:
            return list(await asyncio.gather(*map(self._answer_one, requests)))
        return await self._in_turn(requests)

    async def close(self) -> None:
        """Close the adapter."""
        for name in ("close", "aclose"):
            with suppress(Exception):  # the process is about to end
                if (end := method(self._adapter, name)) is not None and (done := end()) is not None:
                    await done

    async def _in_turn(self, requests: Sequence[Request]) -> list[Answer]:
        return await asyncio.get_running_loop().run_in_executor(self._calls, self._answers, requests)

    async def _answer_one(self, request: Request) -> Answer:
        if isinstance(request, LogLikelihood) and not self._awaits_logprobs:
            return (await self._in_turn([request]))[0]
        started = time.perf_counter()
        returned, error = await outcome(self._adapter, request)
        if error is not None:
            return unusable(self._adapter, error)
        return check_answer(returned, request, self._adapter, (time.perf_counter() - started) * 1000)

    def _answers(self, requests: Sequence[Request]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        for places in self._planned(requests):
            asked = [requests[place] for place in places]
            found = ask(self._adapter, asked, think_tags=None, cuts=False)
            for place, answer in zip(places, found, strict=True):
                if is_of_several(answer):
                    # A single request may have made the call fail for all requests.
                    (answer,) = ask(self._adapter, [requests[place]], think_tags=None, cuts=False)
                answers[place] = answer
        unplanned = AdapterError(f"adapter {adapter_name(self._adapter)}: plan_window omitted the request")
        return [answers.get(place, unplanned) for place in range(len(requests))]

    def _planned(self, requests: Sequence[Request]) -> Iterator[Sequence[int]]:
        if method(self._adapter, "plan_window") is None:
            yield range(len(requests))
            return
        for scores in (False, True):
            places = [place for place, one in enumerate(requests) if isinstance(one, LogLikelihood) is scores]
            calls = planned_calls(self._adapter, [requests[place] for place in places]) if places else []
            if not isinstance(calls, AdapterError):
                yield from ([places[number] for number in call] for call in calls)


def _facts(adapter: Any, node: str) -> ReplicaFacts:
    from pytest_lmeval import __version__

    identity = identity_of(adapter)
    facts = AdapterFacts.of(adapter)
    return ReplicaFacts(
        name=adapter_name(adapter),
        identity=identity,
        # The ledger's key for a model.
        fingerprint=member(adapter, "fingerprint") or "" if is_ours(adapter) else identity.key,
        manifest=member(adapter, "manifest") or {},
        attributes=members(adapter, REPLICATED),
        generates=facts.methods != {"loglikelihood"},
        scores="loglikelihood" in facts.methods,
        streams=facts.streams,
        version=__version__,
        node=node,
        pid=os.getpid(),
    )
