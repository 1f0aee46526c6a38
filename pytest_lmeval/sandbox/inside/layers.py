"""Apply layers of confinement to this process before it receives a program."""

from __future__ import annotations

import math
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIGKILL = 9
MOST_SIGNALS = 256
# The stack for calls from Python through C to Python, at the host's recursion limit.
STACK_BYTES = 64 * 1024 * 1024


def attempt(name: str, step: Callable[..., object], *arguments: Any) -> tuple[str, str] | None:
    """Apply the layer ``name``; if that fails, return the layer's name and the reason."""
    try:
        step(*arguments)
    except (KeyError, OSError, ValueError) as error:
        return name, f"{type(error).__name__}: {error}"
    return None


def prepare(names: Sequence[str], limits: Mapping[str, float]) -> tuple[str, str] | None:
    """Apply the named layers in order; return the first layer that failed, and the reason."""
    return next(filter(None, (attempt(name, _apply, name, limits) for name in names)), None)


def _apply(name: str, limits: Mapping[str, float]) -> None:
    LAYERS[name](limits)


def adopt_orphans() -> None:
    """Become the parent of each descendant whose parent dies, even in another session."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _limits(limits: Mapping[str, float]) -> None:
    # The supervisor measures CPU time more precisely, but the program can stop the supervisor.
    _cap(resource.RLIMIT_CPU, math.ceil(limits["cpu_s"]) + 1)
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, limits["file_bytes"])
    _cap(resource.RLIMIT_NOFILE, limits["open_files"])
    _raise_stack()
    if sys.platform == "linux":
        # All processes of a user share one signal queue, so a program must not fill the queue.
        _cap(resource.RLIMIT_SIGPENDING, MOST_SIGNALS)
    if "memory_bytes" in limits:
        _cap(resource.RLIMIT_AS, limits["memory_bytes"])


def _cap(which: int, limit: float) -> None:
    value, hard = int(limit), resource.getrlimit(which)[1]
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (lowest, lowest))


def _raise_stack() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_STACK, (most, hard))


def _tree(_: Mapping[str, float]) -> None:
    """Ask the kernel to kill this process if the supervisor dies, because nothing else would end it."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        from . import kernel

        kernel.prctl(option, value)


LAYERS: Mapping[str, Callable[[Mapping[str, float]], None]] = {"limits": _limits, "tree": _tree}
