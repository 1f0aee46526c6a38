"""Running a program for its effect, in one call."""

from __future__ import annotations

import functools

from pytest_lmeval.sandbox.core import Sandbox
from pytest_lmeval.sandbox.opening import open_sandbox
from pytest_lmeval.sandbox.results import ExecutionResult, Limits, ProgramRun


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
