"""Which part of the machine a process computes on, as one of several workers of pytest-xdist or alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_lmeval.adapters.hf.options import fault


def worker_number(environment: Mapping[str, str]) -> int:
    """Return K in worker ``gwK``, 0 outside of one."""
    worker = re.fullmatch(r"gw(\d{1,6})", environment.get("PYTEST_XDIST_WORKER", ""), re.ASCII)
    return int(worker[1]) if worker else 0


def share_threads(threads: int, environment: Mapping[str, str]) -> int:
    """Return how many of ``threads`` are one worker's, at least one; all of them outside of a worker.

    Two processes with a thread for every core each wait for one another at every step: on two cores that took nine
    times as long as two processes with a thread each.
    """
    workers = re.fullmatch(r"[1-9]\d{0,5}", environment.get("PYTEST_XDIST_WORKER_COUNT", ""), re.ASCII)
    return max(1, threads // int(workers[0])) if workers else threads


def choose_device(wanted: str, gpus: int, worker: int) -> str:
    """Return ``cpu`` or ``cuda:N``: with several GPUs, worker K gets number K modulo their number.

    ``wanted`` is ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Raise UsageError for a GPU that is not there.

    >>> choose_device("auto", gpus=2, worker=3)
    'cuda:1'
    """
    if wanted == "cpu" or (wanted == "auto" and gpus == 0):
        return "cpu"
    number = wanted.partition(":")[2]
    if gpus == 0 or (number and int(number) >= gpus):
        there = f"cuda:0 to cuda:{gpus - 1}" if gpus > 1 else "cuda:0" if gpus else "no CUDA device at all"
        raise fault(f"option device is {wanted!r}, but torch sees {there}")
    return f"cuda:{int(number) if number else worker % gpus}"
