"""Provide ``execute_code`` for task files; while a run scores a task, the function uses the run's sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pytest_lmeval.sandbox import ExecutionResult
from pytest_lmeval.sandbox import execute_code as execute_anywhere

_SANDBOX: ContextVar[Any] = ContextVar("_SANDBOX", default=None)


@contextmanager
def running_code_in(sandbox: Any) -> Iterator[None]:
    """Make ``execute_code`` use ``sandbox``, or the best available sandbox if ``sandbox`` is None."""
    token = _SANDBOX.set(sandbox)
    try:
        yield
    finally:
        _SANDBOX.reset(token)


def execute_code(
    code: str, timeout: float = 5.0, maximum_memory_bytes: int | None = 256 * 1024 * 1024
) -> ExecutionResult:
    """Run ``code`` as a script; return its outcome, such as ``success``, ``stdout``, ``error`` and ``timeout``.

    ``timeout`` is in seconds of CPU time. Raises SandboxError if the code cannot run at the run's sandbox level.
    """
    return execute_anywhere(code, timeout, maximum_memory_bytes, sandbox=_SANDBOX.get())
