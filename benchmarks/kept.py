"""Measures answers that are not asked for again: out of the cache, and replayed from a ledger, beside an instant model.

Usage: ``python benchmarks/kept.py [--quick]``; about two minutes, seconds with ``--quick``. CPU, a slope over examples.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from machine import describe_machine
from measure import Run, measure
from project import task_file, write_scene
from table import Row, render_table

_US = 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the cache and the adapter replay.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    many, rounds = (50, 1) if quick else (3000, 3)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="lmeval-benchmark-") as folder:
        scene = Path(folder)
        write_scene(scene, (1, many))
        _round(scene, 1)  # compiles
        for _ in range(rounds):
            one, all_of_them = (_round(scene, examples) for examples in (1, many))
            for what, cpu in all_of_them.items():
                found.setdefault(what, []).append((cpu - one[what]) / (many - 1) * _US)
    each = {what: statistics.median(values) for what, values in found.items()}
    reference = each.pop("without")
    print(f"\n{describe_machine()}\n")
    print(
        render_table(
            Row(f"CPU per example, {what}", "us", cpu, "instant model", reference) for what, cpu in each.items()
        )
    )


def _round(scene: Path, examples: int) -> dict[str, float]:
    """Return the CPU seconds of a run of each kind; those that take answers come after those that leave them."""
    project = scene / "project"
    shutil.rmtree(project / "cache", ignore_errors=True)
    runs = {
        "without": ("--lm-adapter=instant:Right", "--lm-report-dir=left"),
        "into the cache": ("--lm-adapter=instant:Right", "--lm-cache=cache"),
        "out of the cache": ("--lm-adapter=instant:Right", "--lm-cache=cache"),
        "replayed": ("--lm-adapter=replay:left/ledger.jsonl",),
    }
    return {
        what: measure(Run((task_file(examples), *options), f"{examples} passed"), scene).cpu
        for what, options in runs.items()
    }


if __name__ == "__main__":
    main()
