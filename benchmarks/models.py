"""Measures several models in one run: two servers asked at once take the time of one, an item the CPU that it takes.

Usage: ``python benchmarks/models.py [--quick]``; about two minutes, seconds with ``--quick``. Start-up, the time of a
run of one example for each model, is taken off. CPU is that of models that answer at once, for each item: of two
models with so many examples, and of one with twice as many.
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
from measure import Run, interleave
from project import task_file, write_scene
from serving import Load, serving, timed, write_tasks
from table import Row, render_table

_RUNS = 5
_AIM = 1.2
_AIM_OF_CPU = 1.1
_EXAMPLES = 2_000
_US = 1e6


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
        own, shared = _cpu(scene / "cpu", 100 if quick else _EXAMPLES, 1 if quick else _RUNS)
    one, two = (statistics.median(walls) for walls in zip(*samples, strict=True))
    how = f"{load.requests} requests each, {load.in_flight} in flight, {load.seconds * 1000:g} ms"
    what = f"CPU per item of {100 if quick else _EXAMPLES:,} examples, two models"
    print(f"\n{describe_machine()}; {time.monotonic() - started:.0f} s in all\n")
    print(
        render_table(
            [
                Row(f"one model alone, {how}", "s", one, "ideal", load.ideal),
                Row(f"two models in one run, {how}", "s", two, "one model alone", one, _AIM, "ratio"),
                Row(what, "us", shared * _US, "as many items of one", own * _US, _AIM_OF_CPU, "ratio"),
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


def _cpu(scene: Path, examples: int, rounds: int) -> tuple[float, float]:
    """Return the seconds of CPU for each item: of one model, and of two that are asked half of the examples each."""
    scene.mkdir()
    write_scene(scene, (1, examples, 2 * examples))
    two = [f"--lm-adapter={label}=instant:Right" for label in "ab"]
    runs = {
        f"{models} {size}": Run((task_file(size), *options), f"{size * models} passed")
        for models, options, sizes in (
            (1, ["--lm-adapter=instant:Right"], (1, 2 * examples)),
            (2, two, (1, examples)),
        )
        for size in sizes
    }
    cpu = {name: cost.cpu for name, cost in interleave(runs, scene, rounds).items()}
    items = 2 * examples
    return (cpu[f"1 {items}"] - cpu["1 1"]) / (items - 1), (cpu[f"2 {examples}"] - cpu["2 1"]) / (items - 2)


if __name__ == "__main__":
    main()
