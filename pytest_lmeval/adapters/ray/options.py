"""Check the ``ray`` adapter's options; all other options belong to the adapter that it copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pytest_lmeval.adapters.options import Check, checked
from pytest_lmeval.adapters.options import fault as adapter_fault
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import Number

fault = partial(adapter_fault, "ray")


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Options for the number of replicas, their resources, and the distribution of requests.

    ``num_gpus`` and ``num_cpus`` are each replica's resources. A replica has at most ``ahead`` batches of
    ``batch_size`` requests at a time. ``restarts`` is the maximum number of replicas that the run starts to replace
    dead replicas. ``wait_s`` is the maximum number of seconds until a replica is ready, and between two answers from a
    busy replica.
    """

    replicas: int = 8
    num_gpus: float = 1
    num_cpus: float = 4
    address: str = "auto"
    ahead: int = 2
    batch_size: int = 16
    restarts: int = 8
    wait_s: float = 600

    @property
    def in_flight(self) -> int:
        """The number of requests that keep all replicas busy: for each replica, one batch more than it holds."""
        return self.replicas * (self.ahead + 1) * self.batch_size


def _address(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"auto|([\w.-]+|\[[\da-fA-F:]+\]):\d{1,5}", value, re.ASCII):
        raise ValueError("auto, or HOST:PORT of the cluster's head; pytest runs on a node of the cluster")
    return value


_CHECKS: Mapping[str, Check] = {
    "replicas": Number(1, 1000, whole=True).check,
    "num_gpus": Number(0, 1000).check,
    "num_cpus": Number(0, 1000).check,
    "address": _address,
    "ahead": Number(1, 10, whole=True).check,
    "batch_size": Number(1, 4096, whole=True).check,
    "restarts": Number(0, 1_000_000, whole=True).check,
    "wait_s": Number(above=0).check,
}
NAMES = frozenset(_CHECKS)
LARGEST_IN_FLIGHT = 1_000_000


def shared_out(given: Mapping[str, Any]) -> tuple[RayOptions, dict[str, Any]]:
    """Separate the options of ``ray`` from those of the copied adapter; raise UsageError for an invalid value."""
    own = checked("ray", _CHECKS, {name: value for name, value in given.items() if name in NAMES})
    options = RayOptions(**own)
    if options.in_flight > LARGEST_IN_FLIGHT:
        product = f"{options.replicas} replicas x {options.ahead + 1} batches x {options.batch_size} requests"
        raise fault(f"options replicas, ahead and batch_size: {product} are more than {LARGEST_IN_FLIGHT}")
    return options, {name: value for name, value in given.items() if name not in NAMES}


def lack(nodes: Sequence[Mapping[str, float]], options: RayOptions) -> str:
    """Return a message if a cluster's ``nodes`` lack capacity for all replicas; otherwise, return "".

    ``nodes`` contains each node's resources by Ray's names, such as ``CPU`` and ``GPU``. Each replica needs all its
    resources on one node.
    """
    each = {"CPU": options.num_cpus, "GPU": options.num_gpus}
    needs = {name: number for name, number in each.items() if number}
    if not needs:
        return ""
    # Add a billionth, so that three thirds of a GPU are one GPU.
    room = sum(min(int(node.get(name, 0) / number + 1e-9) for name, number in needs.items()) for node in nodes)
    if room >= options.replicas:
        return ""
    wanted = _amounts({name: number * options.replicas for name, number in needs.items()})
    there = _amounts({name: sum(node.get(name, 0) for node in nodes) for name in needs})
    replicas = f"{options.replicas} replica{'s' if options.replicas > 1 else ''} with {_amounts(needs)} each"
    what_to_do = f"replicas={room}" if room else "num_gpus and num_cpus set what one replica needs"
    return f"{replicas} need {wanted}; the cluster has {there} on {len(nodes)} node(s), room for {room} ({what_to_do})"


def _amounts(resources: Mapping[str, float]) -> str:
    return " and ".join(f"{number:g} {name}{'' if number == 1 else 's'}" for name, number in resources.items())
