"""The adapter ``ray``, which a run uses like the adapter that it copies."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress
from functools import partial
from typing import Any

from pytest_lmeval.adapters.identity import ReplicaFacts
from pytest_lmeval.adapters.ray.actor import ModelOrder
from pytest_lmeval.adapters.ray.cluster import RemoteReplica, connect, wait_closed
from pytest_lmeval.adapters.ray.options import RayOptions, fault, shared_out
from pytest_lmeval.adapters.ray.pool import Pool
from pytest_lmeval.adapters.ray.sharing import SharedRequest
from pytest_lmeval.adapters.resolve import check_spec, making, resolve_profile
from pytest_lmeval.arguments import THINK_TAGS
from pytest_lmeval.errors import AdapterDown
from pytest_lmeval.types import LogLikelihood, Request


def make(spec: str, **given: Any) -> RayAdapter:
    """Create the adapter ``ray:SPEC``; raise UsageError if no replica starts."""
    if not spec or spec.partition(":")[0] == "ray":
        raise fault("needs an adapter to copy: ray:SPEC, such as ray:hf:PATH")
    options, others = shared_out(given)
    if re.fullmatch(r"gw\d+", os.environ.get("PYTEST_XDIST_WORKER", "")):
        raise fault("runs in one pytest process, which sends requests to all replicas: omit the option -n")
    made = making()
    check_spec(spec, made.registry, made.project)
    model = resolve_profile(spec, others, made.project, made.read)
    project = None if made.project is None else str(made.project)
    order = ModelOrder(model.adapter, dict(model.options), project, os.getcwd())
    ray = connect(options)
    pool = Pool(options, partial(RemoteReplica, ray, options, order), partial(wait_closed, ray))
    return RayAdapter(pool, pool.open(), options)


class RayAdapter:
    """Sends requests to replicas; has the name, the identity and the attributes of the adapter that it copies."""

    is_ready = True
    identity: Any = None

    def __init__(self, pool: Pool, facts: ReplicaFacts, options: RayOptions) -> None:
        vars(self).update(facts.attributes)
        self.name, self.identity, self.fingerprint = facts.name, facts.identity, facts.fingerprint
        self.requests_in_flight = options.in_flight
        self._manifest = facts.manifest
        self._pool = pool
        # The run may set the tags around thoughts, and the time limit of a request from its start on a replica.
        self.think_tags: tuple[str, str] | None = THINK_TAGS
        self.time_limit_s = float("inf")
        if facts.generates:
            self.complete = self._answer
        if facts.scores:
            self.loglikelihood = self._score

    @property
    def manifest(self) -> dict[str, Any]:
        """The model's manifest, with the node and process of each replica, and the number of replicas that died."""
        remarks = {"remarks": list(self._pool.remarks)} if self._pool.remarks else {}
        return {**self._manifest, "replicas": self._pool.places, "deaths": self._pool.deaths, **remarks}

    def close(self) -> None:
        """End all replicas."""
        self._pool.close()

    async def aclose(self) -> None:
        """End all replicas."""
        await asyncio.to_thread(self._pool.close)

    async def _answer(self, request: Request) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(found: Any) -> None:
            if not answer.done():  # the first answer counts
                answer.set_result(found)

        def deliver(found: Any) -> None:
            with suppress(RuntimeError):  # the run has closed its loop
                loop.call_soon_threadsafe(settle, found)

        self._pool.think_tags, self._pool.time_limit_s = self.think_tags, self.time_limit_s
        self._pool.ask(SharedRequest(request, deliver, answer.done))
        found = await answer
        if isinstance(found, AdapterDown):
            raise found
        return found

    async def _score(self, requests: list[LogLikelihood]) -> list[Any]:
        return list(await asyncio.gather(*map(self._answer, requests)))
