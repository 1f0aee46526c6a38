"""``execute_code`` for task files: uses the sandbox of the run while a task is scored."""

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
    """Have ``execute_code`` use ``sandbox``, at the run's level; None for the best available."""
    token = _SANDBOX.set(sandbox)
    try:
        yield
    finally:
        _SANDBOX.reset(token)


def execute_code(
    code: str, timeout: float = 5.0, maximum_memory_bytes: int | None = 256 * 1024 * 1024
) -> ExecutionResult:
    """Run ``code`` as a script; return its ``success``, ``stdout``, ``error`` and ``timeout``.

    ``timeout`` is in seconds of CPU time. Raises SandboxError if code cannot run at the run's level.
    """
    return execute_anywhere(code, timeout, maximum_memory_bytes, sandbox=_SANDBOX.get())
