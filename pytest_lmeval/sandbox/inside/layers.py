"""What the child does to itself before it is given a program: one function per layer of a sandbox level."""

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


def prepare(names: Sequence[str], limits: Mapping[str, Any]) -> tuple[str, str] | None:
    """Apply the layers in order; return the first that could not be, and why."""
    for name in names:
        try:
            LAYERS[name](limits)
        except (KeyError, OSError, ValueError) as error:
            return name, f"{type(error).__name__}: {error}"
    return None


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, also of one that left the session."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _limits(limits: Mapping[str, Any]) -> None:
    """Set the resource limits of the process; each process that it starts inherits them."""
    # The supervisor's own clock is finer; this one still runs when the program has stopped the supervisor.
    _cap(resource.RLIMIT_CPU, math.ceil(limits["cpu_s"]) + 1)
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, limits["file_bytes"])
    _cap(resource.RLIMIT_NOFILE, limits["open_files"])
    if sys.platform == "linux":
        # The queue is the user's: it counts for all processes, so programs that fill it would take it from others.
        _cap(resource.RLIMIT_SIGPENDING, MOST_SIGNALS)
    if limits["memory_bytes"] is not None:
        _cap(resource.RLIMIT_AS, limits["memory_bytes"])


def _cap(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (lowest, lowest))


def _tree(_: Mapping[str, Any]) -> None:
    """Die with the supervisor, which would otherwise have no one to do its killing."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        from . import kernel

        kernel.prctl(option, value)


LAYERS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {"limits": _limits, "tree": _tree}
