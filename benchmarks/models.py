"""Measures several models in one run: two servers that are asked at once take the time of one.

Usage: ``python benchmarks/models.py [--quick]``; about a minute, seconds with ``--quick``. Start-up, the time of a run
of one example for each model, is taken off.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from machine import describe_machine
from serving import Load, serving, timed, write_tasks
from table import Row, render_table

_RUNS = 5
_AIM = 1.2


def main() -> None:
    """Print the time of one model alone, of two in one run, and their ratio."""
    parser = argparse.ArgumentParser(description="Measure two models in one run beside one alone.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    started = time.monotonic()
    load = Load(32, 4, 0.05) if quick else Load(800, 8, 0.05)
    with tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as folder, contextlib.ExitStack() as stack:
        scene = Path(folder)
        write_tasks(scene, load.requests)
        ports = [stack.enter_context(serving(load)) for _ in range(2)]
        samples = [(_wall(scene, load, ports[:1]), _wall(scene, load, ports)) for _ in range(1 if quick else _RUNS)]
    one, two = (statistics.median(walls) for walls in zip(*samples, strict=True))
    how = f"{load.requests} requests each, {load.in_flight} in flight, {load.seconds * 1000:g} ms"
    print(f"\n{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    print(
        render_table(
            [
                Row(f"one model alone, {how}", "s", one, "ideal", load.ideal),
                Row(f"two models in one run, {how}", "s", two, "one model alone", one, _AIM, "ratio"),
            ]
        )
    )


def _wall(scene: Path, load: Load, ports: Sequence[int]) -> float:
    """Return the seconds that the items of a run take that asks the server of each port, start-up taken off."""

    def once(tasks: str) -> float:
        options: list[object] = [
            "--lm-concurrency",
            load.in_flight,
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
        ]
        for number, port in enumerate(ports):
            options += [f"--lm-adapter=m{number}=openai:m"]
            options += [f"--lm-adapter-arg=m{number}:base_url=http://127.0.0.1:{port}/v1"]
        return timed([sys.executable, "-m", "pytest", f"{tasks}/t.jsonl", *options], scene).wall

    return once("all") - once("one")


if __name__ == "__main__":
    main()
