"""Connect to a Ray cluster and start processes for replicas; no other module of the run uses Ray."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.adapters.ray.actor import ModelOrder, ReplicaActor
from pytest_lmeval.adapters.ray.options import RayOptions, fault, lack

_CLOSING_S = 2.0
_REACH_S = 10.0
Then = Callable[[Any, BaseException | None], None]
"""Takes a call's result, or its exception; runs in a Ray thread and must not block."""


def connect(options: RayOptions) -> Any:
    """Connect the module ``ray`` to a cluster with room for all replicas and return the module, or raise UsageError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise fault("needs Ray: pip install 'pytest-lmeval[ray]'") from None
    if not ray.is_initialized():
        try:
            _reach(options.address)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # The nodes' output is in their logs; here it would mix with the tests' output.
                ray.init(address=options.address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise fault(
                f"no Ray cluster at address={options.address}: {type(error).__name__}: {reason:.300}; "
                "start one with 'ray start --head', and run pytest on one of its nodes"
            ) from None
    nodes: list[Mapping[str, float]] = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if missing := lack(nodes, options):
        raise fault(missing)
    return ray


def _reach(address: str) -> None:
    """Raise OSError if no cluster listens at the address, because Ray itself would retry for minutes."""
    named = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, colon, port = named.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_S).close()


class RemoteReplica:
    """A replica's process, on any node of the cluster."""

    def __init__(self, ray: Any, options: RayOptions, order: ModelOrder) -> None:
        self._ray = ray
        actor = ray.remote(ReplicaActor).options(
            num_cpus=options.num_cpus, num_gpus=options.num_gpus, max_restarts=0, scheduling_strategy="SPREAD"
        )
        self._actor = actor.remote(order, "")

    def load(self, then: Then) -> None:
        """Tell the process to create its adapter."""
        _call(self._actor.load.remote(), then)

    def ask(self, requests: Sequence[Any], think_tags: tuple[str, str] | None, then: Then) -> None:
        """Send requests to the process."""
        _call(self._actor.ask.remote(requests, think_tags), then)

    def close(self) -> Any:
        """Tell the process to close its adapter; return a reference for :func:`wait_closed`."""
        return self._actor.close.remote()

    def end(self) -> None:
        """End the process."""
        self._ray.kill(self._actor, no_restart=True)

    def died(self, error: BaseException) -> bool:
        """Return True if ``error`` means that the process or its node died, False if the model raised it."""
        known = self._ray.exceptions
        return isinstance(error, known.RayError) and not isinstance(error, known.RayTaskError)

    def is_unreachable(self, error: BaseException) -> bool:
        """Return True if ``error`` means that the process cannot be reached."""
        return isinstance(error, self._ray.exceptions.ActorUnavailableError)


def wait_closed(ray: Any, closing: Sequence[Any]) -> None:
    """Wait up to 2 s for adapters to close."""
    if closing:
        ray.wait(list(closing), num_returns=len(closing), timeout=_CLOSING_S)


def _call(reference: Any, then: Then) -> None:
    def done(future: Any) -> None:
        error = future.exception()
        then(None if error is not None else future.result(), error)

    reference.future().add_done_callback(done)
