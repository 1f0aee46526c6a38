"""What one pytest run costs: CPU of the process and all its children, wall time, peak memory."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

__all__ = ["DEPENDENCIES", "OURS", "Cost", "Run", "interleave", "slope", "strangers"]

# What an installation of the plugin brings along. Every other plugin of the environment stays out of the figures.
OURS = ("lmeval",)
DEPENDENCIES = ("metadata", "pytest_jsonreport", "xdist", "xdist.looponfail")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One way to call pytest, in a folder of the scene; it does without the ``blocked`` plugins.

    ``outcome`` is what pytest must say at its end, such as ``10000 passed``.
    """

    arguments: tuple[str, ...]
    outcome: str
    blocked: tuple[str, ...] = ()
    folder: str = "project"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall in seconds, peak resident memory of the largest process in bytes."""

    cpu: float
    wall: float
    rss: float


def interleave(runs: Mapping[str, Run], scene: Path, rounds: int, *, warm_up: bool = True) -> dict[str, Cost]:
    """Return the median cost of every run; A B A B, so that a slow minute of the machine meets all alike.

    A warm-up keeps out what is compiled once and cached on disk; a single round is of no such precision.
    """
    for run in runs.values() if warm_up and rounds > 1 else ():
        measure(run, scene)
    samples: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(measure(run, scene))
    return {name: _median(costs) for name, costs in samples.items()}


def measure(run: Run, scene: Path) -> Cost:
    """Return the cost of one run; raise RuntimeError unless it ended as it should."""
    blocked = [f"-pno:{name}" for name in [*run.blocked, *strangers()]]
    command = [sys.executable, "-m", "pytest", "-q", *blocked, *run.arguments]
    # What pytest remembers of the runs before, of any size, would be read and written again.
    shutil.rmtree(scene / run.folder / ".pytest_cache", ignore_errors=True)
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(command, cwd=scene / run.folder, env=_environment(scene), stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if not re.search(rf"^(=+ )?{run.outcome}\b", text, re.MULTILINE):
        raise RuntimeError(f"{' '.join(command)}: expected {run.outcome!r}, got\n{text[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * _RSS_UNIT)


def slope(many: Cost, one: Cost, examples: int) -> Cost:
    """Return what each further example costs: the difference of two runs over the difference of their sizes."""
    further = examples - 1
    return Cost(
        cpu=(many.cpu - one.cpu) / further, wall=(many.wall - one.wall) / further, rss=(many.rss - one.rss) / further
    )


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in ("cpu", "wall", "rss")))


def strangers() -> list[str]:
    """Return the names of the plugins that an installation of this one does not bring along."""
    known = {*OURS, *DEPENDENCIES}
    return sorted({entry.name for entry in entry_points(group="pytest11")} - known)


def _environment(scene: Path) -> dict[str, str]:
    # Nothing of the caller's own settings; compiled modules as an installation has them, but kept in the scene.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST_", "COV"))}
    paths = {"PYTHONPATH": str(scene / "project"), "PYTHONPYCACHEPREFIX": str(scene / "compiled")}
    return {**kept, **paths, "PYTHONHASHSEED": "0", "COLUMNS": "120"}
