"""Watch one program, and end it together with all processes that it started.

The supervisor is the program's parent, and adopts descendants that lose their parents. The supervisor ends when its
parent ends, because that closes the control pipe. A program can kill its supervisor, since both run as the same user,
but the program then dies too, and the run is an error. The supervisor's exit status shows why the program ended, but
scores never depend on it.
"""

from __future__ import annotations

import os
import select

from . import host, layers, tree, wire
from .wire import OVER_CPU, OVER_PROCESSES, STOPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

TICK_MS = 20


def main(request: int, result: int, control: int) -> NoReturn:
    """Run one program with the pipes ``request`` and ``result``, until the program ends or ``control`` is closed."""
    owner = os.getppid()
    setup = wire.receive(request)
    layers.adopt_orphans()
    pid = os.fork()
    if pid == 0:
        os.close(control)
        os.setsid()
        host.serve(request, result, layers.prepare(setup["layers"], setup["limits"]))
    for fd in (0, 1, request, result):
        os.close(fd)
    code = _watch(pid, control, owner, setup["limits"])
    if _is_alone(owner, control):
        import shutil  # most runs do not need this module

        shutil.rmtree(os.getcwd(), ignore_errors=True)
    os._exit(code)


def _watch(pid: int, control: int, owner: int, limits: Mapping[str, float]) -> int:
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
        # A killed supervisor makes the parent report an error and look for remaining processes.
        os.kill(os.getpid(), tree.SIGKILL)
    return OVER_CPU if tree.cpu_seconds([]) >= limits["cpu_s"] else code


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return wire.exit_code(status) if ended else None


def _excess(limits: Mapping[str, float]) -> int | None:
    below = tree.descendants()
    if len(below) > limits["processes"]:
        return OVER_PROCESSES
    return OVER_CPU if tree.cpu_seconds(below) >= limits["cpu_s"] else None


def _is_alone(owner: int, control: int) -> bool:
    # A dying process closes its pipes before its children get a new parent, so check for both.
    poll = select.poll()
    poll.register(control, 0)
    return bool(poll.poll(0)) or os.getppid() != owner
