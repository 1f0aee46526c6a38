"""The last resort against processes that outlived their supervisor."""

from __future__ import annotations

import contextlib
import os

COOKIE = "LMEVAL_SANDBOX_RUN"
SIGKILL = 9
ROUNDS = 20


def kill(run: str, folder: str) -> None:
    """Kill every process that is of ``run``, where ``/proc`` tells.

    That is one with the mark of the run in its environment, and one that has its working folder, its program or an open
    file in the run's private ``folder``: who starts another program may give it any environment.
    """
    mark, below = f"{COOKIE}={run}".encode(), os.path.realpath(folder)
    for _ in range(ROUNDS):
        marked = [pid for pid in _pids() if mark in _environment(pid) or _is_in(below, pid)]
        if not marked:
            return
        for pid in marked:
            with contextlib.suppress(OSError):
                os.kill(pid, SIGKILL)


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
    except OSError:
        return []


def _is_in(folder: str, pid: int) -> bool:
    links = [f"/proc/{pid}/{name}" for name in ("cwd", "exe")]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd")]
    # Not the folder itself as an open file: its lock is the parent's, and so of what that forked in the meantime.
    return _target(links[0]) == folder or any(_target(link).startswith((f"{folder}/", f"{folder} (")) for link in links)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            return environment.read()
    except OSError:
        return b""
