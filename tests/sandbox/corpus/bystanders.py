"""A process, a terminal and names in the kernel that a program has no business with."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Terminal", "Victim", "leftovers", "survivors"]

PATIENCE_S = 3.0
# A signal that was sent is pending, or acted on, a moment later.
MOMENT_S = 0.02
# Of the fields of /proc/PID/stat after the name: nice, and the scheduling policy.
NICE, POLICY = 16, 38
STATUS = ("TracerPid", "Cpus_allowed", "SigPnd", "ShdPnd", "Uid", "Gid")
IPC = ("shm", "sem", "msg")


class Victim:
    """A process of the same user with a secret in its environment and in an open file."""

    def __init__(self, folder: Path, file: Path, secret: str) -> None:
        with file.open("rb") as stdin:
            self._process = subprocess.Popen(
                ["sleep", "60"], stdin=stdin, cwd=folder, env={"SECRET": secret}, start_new_session=True
            )
        self.pid = self._process.pid
        # It has its environment a moment after it has its number.
        while not self._facts()["environment"]:
            time.sleep(0.001)
        self._before = self._facts()

    def changes(self) -> list[str]:
        """Return what is different about the process from when it was started."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return [f"another process was ended ({self._process.wait(MOMENT_S)})"]
        after = self._facts()
        return [f"another process: {name} is {after[name]!r}" for name in after if after[name] != self._before[name]]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _facts(self) -> dict[str, str]:
        folder = Path("/proc", str(self.pid))
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
        facts = {name: status[name] for name in STATUS}
        facts |= {"stopped": str(fields[0] in "tT"), "nice": fields[NICE], "policy": fields[POLICY]}
        return facts | {"limits": (folder / "limits").read_text(), "environment": (folder / "environ").read_text()}


class Terminal:
    """A terminal that somebody might sit at."""

    def __init__(self) -> None:
        self._keyboard, self._screen = os.openpty()
        self.path = os.ttyname(self._screen)
        os.set_blocking(self._keyboard, False)

    def changes(self, token: str) -> list[str]:
        """Return whether ``token`` is on the screen."""
        with contextlib.suppress(OSError):
            return ["the terminal shows it"] if token.encode() in os.read(self._keyboard, 1 << 16) else []
        return []

    def close(self) -> None:
        """Close both ends."""
        os.close(self._keyboard)
        os.close(self._screen)


def survivors(token: str, patience_s: float = PATIENCE_S) -> list[str]:
    """Return the processes that carry ``token`` in their name or command line, after a while; end them."""
    give_up = time.monotonic() + patience_s
    # What was killed last may be gone only a moment later.
    while (found := list(_marked(token))) and time.monotonic() < give_up:
        time.sleep(0.02)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"process {pid} outlived the run" for pid in found]


def _marked(token: str) -> Iterator[int]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            folder = Path("/proc", name)
            if token.encode() in (folder / "comm").read_bytes() + (folder / "cmdline").read_bytes():
                yield int(name)


def leftovers(token: str, key: int) -> list[str]:
    """Return what the run left outside of its scratch under its ``token`` or ``key``; remove it."""
    found = []
    for folder in (Path("/tmp"), Path("/dev/shm")):
        for path in folder.glob(f"*{token}*"):
            found.append(f"{path} was left")
            path.unlink()
    found += [f"System V {kind} {key} was left" for kind in IPC if _remove_ipc(kind, key)]
    if ctypes.CDLL(None).mq_unlink(f"/{token}".encode()) == 0:
        found.append("a message queue was left")
    return found


def _remove_ipc(kind: str, key: int) -> bool:
    libc = ctypes.CDLL(None)
    for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]:
        own, number, *_ = map(int, line.split()[:2])
        if own & 0xFFFFFFFF == key:
            remove = {"shm": libc.shmctl, "msg": libc.msgctl}.get(kind)
            remove(number, 0, None) if remove else libc.semctl(number, 0, 0)
            return True
    return False
