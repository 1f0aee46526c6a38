"""Measures how much faster eight replicas of the adapter `ray` are than one, with a model that sleeps.

Usage: ``python benchmarks/replicas.py [--quick]``; two minutes, one with ``--quick``. Starts a cluster of three
nodes on this machine. The time until all replicas are ready is not counted. Needs Ray (``.[ray]``).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import describe_machine
from table import Row, render_table

from pytest_lmeval import run_leaderboard
from pytest_lmeval.loading import load_tasks, make_adapter

_MODEL = """
import time

class Sleeping:
    name = "sleeping"
    fingerprint = "sleeping"

    def generate(self, prompts):
        time.sleep({sleep_s} * len(prompts))
        return list(prompts)
"""
_REPLICAS = 8
_EACH = 20
_READY_S = 120.0
# Of the ideal, one eighth of the time of one replica with as much for each.
_AIM = 1 / 0.9


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the replicas of the adapter ray.")
    parser.add_argument("--quick", action="store_true", help="short: shows that it runs, not how fast")
    sleep_s = 0.1 if parser.parse_args().quick else 1.0
    started = time.monotonic()
    with _cluster(), tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as scene:
        folder = Path(scene)
        (folder / "sleeping.py").write_text(_MODEL.format(sleep_s=sleep_s), encoding="utf-8")
        os.chdir(folder)
        one, eight = (_wall(folder, replicas) for replicas in (1, _REPLICAS))
    print(f"\n{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    what = f"{_EACH} requests of {sleep_s} s for each replica"
    rows = [
        Row(f"1 replica, {what}", "s", one, "the sleep alone", _EACH * sleep_s),
        Row(f"{_REPLICAS} replicas, {what}", "s", eight, "1 replica", one, _AIM, "ratio"),
    ]
    print(render_table(rows))
    print(f"\n{_REPLICAS} replicas are {_REPLICAS * one / eight:.2f} times as fast as one")


@contextmanager
def _cluster() -> Iterator[None]:
    """Have a cluster of a head without processors and three nodes of three."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(3):
        made.add_node(num_cpus=3)
    os.environ["RAY_ADDRESS"] = made.address
    try:
        yield
    finally:
        ray.shutdown()
        made.shutdown()


def _wall(folder: Path, replicas: int) -> float:
    """Return the seconds that so many replicas take for their requests, from when all of them are ready."""
    lines = [
        f'{{"id": "{n}", "prompt": "{n}", "targets": ["{n}"], "metric": "exact_match"}}\n'
        for n in range(replicas * _EACH)
    ]
    tasks = folder / f"of-{replicas}.jsonl"
    tasks.write_text("".join(lines), encoding="utf-8")
    options = {"num_gpus": 0, "num_cpus": 1, "replicas": replicas}
    adapter = make_adapter("ray:sleeping:Sleeping", options=options, project=folder)
    try:
        deadline = time.monotonic() + _READY_S
        while len(adapter.manifest["replicas"]) < replicas:
            if time.monotonic() > deadline:
                sys.exit(f"not all of {replicas} replicas were ready after {_READY_S:.0f} s")
            time.sleep(0.1)
        started = time.monotonic()
        board = run_leaderboard(load_tasks(tasks), adapter)
        wall = time.monotonic() - started
    finally:
        adapter.close()
    if board.counts["scored"] != replicas * _EACH:
        sys.exit(f"not all examples were scored: {board.counts}")
    return wall


if __name__ == "__main__":
    main()
