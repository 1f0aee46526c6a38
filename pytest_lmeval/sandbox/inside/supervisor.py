"""The process between the parent and the program: it watches the program, and ends it with all that it started.

It is the program's ``getppid()``, it adopts what leaves the program's session, and it lives no longer than the
parent does: its control pipe then ends. The program may well kill it, as both have one user; then the program dies
with it and the run is an error. Its exit status says to the parent why the program ended, for the reader alone: no
score is taken from it.
"""

from __future__ import annotations

import os
import select

from . import host, layers, tree, wire
from .wire import OVER_CPU, OVER_PROCESSES, SIGNALLED, STOPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

TICK_MS = 20


def main(request: int, result: int, control: int) -> NoReturn:
    """Run one program on the pipes ``request`` and ``result`` until it ends or ``control`` does."""
    owner = os.getppid()
    setup = wire.receive(request)
    layers.adopt_orphans()
    pid = os.fork()
    if pid == 0:
        os.close(control)
        _become_program(request, result, setup)
    for fd in (0, 1, request, result):
        os.close(fd)
    code = _watch(pid, control, owner, setup["limits"])
    if _is_alone(owner, control):
        _remove_scratch()
    os._exit(code)


def _become_program(request: int, result: int, setup: Mapping[str, Any]) -> NoReturn:
    os.setsid()
    missing = layers.prepare(setup["layers"], setup["limits"])
    host.serve(request, result, missing)


def _watch(pid: int, control: int, owner: int, limits: Mapping[str, Any]) -> int:
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    code = None
    while code is None:
        is_stopped = bool(poll.poll(TICK_MS)) or os.getppid() != owner
        code = _ended(pid)
        if code is None:
            code = _excess(limits)
        if code is None and is_stopped:
            code = STOPPED
    if not tree.end_all(pid):
        # The parent takes a killed supervisor for an error of the run, and looks for what it left.
        os.kill(os.getpid(), tree.SIGKILL)
    return OVER_CPU if tree.cpu_seconds([]) >= limits["cpu_s"] else code


def _ended(pid: int) -> int | None:
    """Return how the program ended by itself: its exit status, below 128, or 128 and the signal."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return SIGNALLED - code if code < 0 else min(code, SIGNALLED - 1)


def _excess(limits: Mapping[str, Any]) -> int | None:
    below = tree.descendants()
    if len(below) > limits["processes"]:
        return OVER_PROCESSES
    return OVER_CPU if tree.cpu_seconds(below) >= limits["cpu_s"] else None


def _is_alone(owner: int, control: int) -> bool:
    # A process that dies lets go of its pipes before its children get another parent: either is a sign.
    poll = select.poll()
    poll.register(control, 0)
    return bool(poll.poll(0)) or os.getppid() != owner


def _remove_scratch() -> None:
    """Remove the working folder, which the parent did not live to do."""
    import shutil

    shutil.rmtree(os.getcwd(), ignore_errors=True)
