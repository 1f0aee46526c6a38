"""Find the best available level of confinement, open a sandbox, and run a program in one call."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence

from pytest_lmeval.errors import SandboxError, UsageError
from pytest_lmeval.sandbox.core import Sandbox
from pytest_lmeval.sandbox.forkserver import ForkLauncher
from pytest_lmeval.sandbox.fresh import FreshLauncher
from pytest_lmeval.sandbox.levels import LEVELS, Level
from pytest_lmeval.sandbox.packages import find
from pytest_lmeval.sandbox.results import ExecutionResult, Limits

# numpy's linear algebra reserves more address space than the usual limit, but does not use it.
PACKAGES_MEMORY = 4 * 1024**3
OPT_OUT = (
    "--lm-sandbox process limits what programs use but leaves your files and network open to them; "
    "--lm-sandbox container states that the whole run is inside a disposable container"
)

# The next sandbox reuses the probe's launcher, because a new launcher takes as long to start as dozens of programs.
_probed: list[ForkLauncher] = []


def open_sandbox(level: str | None = None, *, workers: int = 1, packages: Sequence[str] = ()) -> Sandbox:
    """Return a sandbox at ``level``, by default the best available; it starts its processes with its first program.

    ``workers`` is the number of processes of this run that share the CPUs; each process has a sandbox. ``packages``
    names installed distributions that programs may import at the level ``confined``, with their dependencies. With
    packages, the memory limit is at least 4 GiB. Raises `UsageError` for an unknown level or package.
    """
    found = _level(best_level() if level is None else level)
    if found.name != "confined":
        return Sandbox(found, FreshLauncher(found), _parallel(workers))
    if packages:
        return Sandbox(found, ForkLauncher(find(packages)), _parallel(workers), PACKAGES_MEMORY)
    try:
        launcher = _probed.pop()
    except IndexError:
        launcher = ForkLauncher()
    return Sandbox(found, launcher, _parallel(workers))


def _level(name: str) -> Level:
    if name not in LEVELS:
        raise UsageError(f"unknown sandbox level {name!r} (choices: {', '.join(sorted(LEVELS))})")
    if os.name != "posix":
        raise UsageError(f"sandbox level {name!r} needs a POSIX system, not {os.name!r}")
    return LEVELS[name]


def _parallel(workers: int) -> int:
    """Return the number of programs to run at a time: one more than this worker's CPUs, because some programs wait."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cpus // max(1, workers)) + 1


@functools.cache
def probe_level(level: str) -> tuple[str, ...]:
    """Try the actions that a level's layers forbid; return the layers that do not work on this machine.

    Each process caches the result. If the sandbox cannot start, all layers are missing. Raises `UsageError` as
    `open_sandbox` does.
    """
    layers = tuple(_level(level).layers)
    if level == "confined" and sys.platform != "linux":
        return layers
    if level != "confined":
        with open_sandbox(level) as sandbox:
            return sandbox.probe()
    launcher = ForkLauncher()
    try:
        missing = Sandbox(_level(level), launcher).probe()
    except SandboxError:
        missing = layers
    if missing:
        launcher.close()
    else:
        _probed.append(launcher)
    return missing


@functools.cache
def best_level() -> str:
    """Return ``confined`` if all of its layers work, otherwise ``process``."""
    return "process" if probe_level("confined") else "confined"


def require_level(level: str) -> str | None:
    """Return None if programs can run at ``level`` on this machine, otherwise a sentence that names the missing layers.

    Only ``confined`` is probed, because the other levels need only a POSIX system. Raises `UsageError` as
    `open_sandbox` does.
    """
    missing = probe_level(level) if _level(level).name == "confined" else ()
    if not missing:
        return None
    return f"the sandbox level {level!r} does not hold on this machine, which lacks {', '.join(missing)}; {OPT_OUT}"


def execute_code(
    code: str,
    timeout: float = 5.0,
    maximum_memory_bytes: int | None = 256 * 1024 * 1024,
    *,
    sandbox: Sandbox | None = None,
) -> ExecutionResult:
    """Run ``code`` as a script in ``sandbox``, by default at the best available level, and return the outcome.

    ``timeout`` is in seconds of CPU time. The sandbox ends a program that waits for more than ``timeout`` plus two
    seconds without a break. The sandbox ends every program after at most ``3 * timeout + 2`` seconds of real time.
    ``maximum_memory_bytes`` limits the address space; None sets no limit. A program cannot forge success by printing or
    by exiting early, but it can if it finds the sandbox's token in its own process. If forgery matters, request values,
    as the ``code_exec`` metric does. Raises `SandboxError` if the sandbox cannot run the code.
    """
    limits = Limits(cpu_s=timeout, wall_s=3 * timeout + 2, memory_bytes=maximum_memory_bytes)
    run = (sandbox or _shared()).script(code, limits)
    memory_exceeded = run.reason.startswith("MemoryError")
    if run.status == "timeout":
        error = "Execution timed out"
    elif memory_exceeded:
        error = f"Memory limit exceeded: {run.reason} (limit: {maximum_memory_bytes} bytes)"
    else:
        error = run.reason or run.answers[0].text
    return ExecutionResult(
        success=run.status == "pass" and run.answers[0].kind == "value",
        stdout=run.stdout,
        stderr=run.stderr,
        error=error or None,
        timeout=run.status == "timeout",
        memory_exceeded=memory_exceeded,
    )


@functools.cache
def _shared() -> Sandbox:
    """Return this process's shared sandbox, which ends with the process."""
    return open_sandbox()
