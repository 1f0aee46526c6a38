"""Which level of confinement there is on this machine, a sandbox of it, and a program run in it in one call."""

from __future__ import annotations

import contextlib
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
from pytest_lmeval.sandbox.results import ExecutionResult, Limits, ProgramRun

RESERVED = "isolated"
# numpy's linear algebra alone asks for more than the usual limit, without using it.
PACKAGES_MEMORY = 4 * 1024**3
OPT_OUT = (
    "--lm-sandbox process runs programs with limits on what they use but nothing between them and your files and "
    "network; --lm-sandbox container states that the whole run is inside a container that may be thrown away"
)

# What the probe started and the next sandbox goes on with: to start one takes as long as dozens of programs.
_probed: list[ForkLauncher] = []


def open_sandbox(level: str | None = None, *, workers: int = 1, packages: Sequence[str] = ()) -> Sandbox:
    """Return a sandbox of the named level, by default the best there is; it starts nothing before its first program.

    ``workers`` is how many processes of this run have a sandbox of their own, so that they share the CPUs out.
    ``packages`` are installed distributions that programs may import at the level ``confined``, with what they need;
    the limit on memory is then 4 GiB at least. Raises `UsageError` for a level or a package that does not exist.
    """
    found = _level(best_level() if level is None else level)
    if found.name != "confined":
        return Sandbox(found, FreshLauncher(found), _parallel(workers))
    launcher = _started() if not packages else ForkLauncher(find(packages))
    return Sandbox(found, launcher, _parallel(workers), PACKAGES_MEMORY if packages else 0)


def _started() -> ForkLauncher:
    with contextlib.suppress(IndexError):
        return _probed.pop()
    return ForkLauncher()


def _level(name: str) -> Level:
    choices = ", ".join(sorted(LEVELS))
    if name == RESERVED:
        raise UsageError(f"sandbox level {name!r} is reserved: it does not exist yet (choices: {choices})")
    if name not in LEVELS:
        raise UsageError(f"unknown sandbox level {name!r} (choices: {choices})")
    if os.name != "posix":
        raise UsageError(f"sandbox level {name!r} needs a POSIX system, not {os.name!r}")
    return LEVELS[name]


def _parallel(workers: int) -> int:
    """Return how many programs a process should run at a time: one more than its CPUs, since some programs wait."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cpus // max(1, workers)) + 1


@functools.cache
def probe_level(level: str) -> tuple[str, ...]:
    """Return the names of the level's layers that do not hold here, found by trying what they forbid.

    Tried once per process, in a server that the next sandbox without packages goes on with. A sandbox that can't be
    started at all lacks every layer. Raises `UsageError` as `open_sandbox` does.
    """
    layers = tuple(layer.name for layer in _level(level).layers)
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
    """Return ``confined`` where all of its layers hold, else ``process``."""
    return "process" if probe_level("confined") else "confined"


def require_level(level: str) -> str | None:
    """Return None if programs may run at this level here, else one sentence that says what is missing.

    Only ``confined`` can be missing: the others promise no more than any POSIX system has, and name themselves what
    they leave open. Raises `UsageError` as `open_sandbox` does.
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
    """Run ``code`` as a script in ``sandbox``, by default at the best level there is, and tell how it ended.

    ``timeout`` is in seconds of CPU time; a program that only waits is ended two seconds later, one that works a
    little in between after three times as long and two seconds. ``maximum_memory_bytes`` limits the address space; None
    does not. Success can't be forged by printing or by leaving early, but a program that searches its own process for
    the token of the harness could report it: where that matters, ask for values, as the ``code_exec`` metric does.
    Raises `SandboxError` if nothing could be run at all.
    """
    limits = Limits(cpu_s=timeout, wall_s=3 * timeout + 2, memory_bytes=maximum_memory_bytes)
    run = (sandbox or _shared()).script(code, limits)
    memory_exceeded = run.reason.startswith("MemoryError")
    return ExecutionResult(
        success=run.status == "pass" and run.answers[0].kind == "value",
        stdout=run.stdout,
        stderr=run.stderr,
        error=_error(run, maximum_memory_bytes),
        timeout=run.status == "timeout",
        memory_exceeded=memory_exceeded,
    )


@functools.cache
def _shared() -> Sandbox:
    """Return the sandbox of this process, which ends when the process does."""
    return open_sandbox()


def _error(run: ProgramRun, memory: int | None) -> str | None:
    if run.status == "timeout":
        return "Execution timed out"
    if run.reason.startswith("MemoryError"):
        return f"Memory limit exceeded: {run.reason} (limit: {memory} bytes)"
    return run.reason or run.answers[0].text or None
