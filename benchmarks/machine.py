"""The machine and the versions that the figures were taken with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["describe_machine"]

_PACKAGES = ("pytest", "pytest-xdist", "pytest-lmeval")


def describe_machine() -> str:
    """Return one line: processor, cores, Python, pytest, platform."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    parts = [_processor(), f"{_cores()} cores", python, *map(_package, _PACKAGES), platform.platform(terse=True)]
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _cores() -> int:
    # What this process may use, where the system tells: a container often has less than the machine.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} (not installed)"
