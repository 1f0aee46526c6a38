"""Run each program in a new interpreter, under a supervisor that ends all processes that the program starts."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.sandbox import scratch
from pytest_lmeval.sandbox.boot import command, environment, frame
from pytest_lmeval.sandbox.inside import tree
from pytest_lmeval.sandbox.levels import Ends, Level
from pytest_lmeval.sandbox.results import Limits

COOKIE = "LMEVAL_SANDBOX_RUN"
ROUNDS = 20


class FreshLauncher:
    """Starts a new supervisor for each program."""

    def __init__(self, level: Level) -> None:
        self._level = level
        scratch.sweep()

    def launch(self, limits: Limits, ends: Ends) -> _FreshChild:
        """Start a process for one program; raise `SandboxError` if that fails."""
        return _FreshChild(self._level, limits, ends)

    def close(self) -> None:
        """Do nothing, because no process outlives its program."""


class _FreshChild:
    """The process of one program, with the same members as `forkserver._ForkedChild`.

    The child reads ``preamble`` before the first request. ``denies`` means that the level forbids actions that the
    user's own processes may perform. Call ``close`` once, after ``stop``.
    """

    denies = False

    def __init__(self, level: Level, limits: Limits, ends: Ends) -> None:
        self._run = secrets.token_hex(16)
        self.preamble = frame({"layers": list(level.layers), "limits": limits.by_name()})
        self._scratch = scratch.make()
        control_end, self._control = os.pipe()
        try:
            self._process = self._start(ends, control_end)
        except OSError as error:
            os.close(self._control)
            self._scratch.remove()
            raise SandboxError(f"no process for {sys.executable!r}: {error}") from error
        finally:
            os.close(control_end)

    def _start(self, ends: Ends, control: int) -> subprocess.Popen[bytes]:
        handed = (ends.request, ends.result, control)
        return subprocess.Popen(
            command("supervisor", *handed),
            stdin=subprocess.DEVNULL,
            stdout=ends.stdout,
            stderr=ends.stderr,
            pass_fds=handed,
            cwd=self._scratch.path,
            env=environment(self._scratch.path) | {COOKIE: self._run},
            start_new_session=True,
        )

    def processes(self) -> list[int]:
        """Return the ids of the supervisor's descendants, as far as the kernel lists them."""
        return tree.descendants(self._process.pid)

    @property
    def returncode(self) -> int | None:
        """The exit status that `poll` or `wait` returned last, or None."""
        return self._process.returncode

    def poll(self) -> int | None:
        """Return the exit status (one from `inside.wire`, or the program's own), or None while the program runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Wait at most ``timeout_s`` seconds for the process to end; return the exit status, or None."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def stop(self) -> None:
        """Tell the supervisor to end the program and all processes that it started; do not wait."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, b".")
        # The program runs as the same user, so it may have stopped the supervisor.
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the remaining processes and remove the program's files."""
        os.close(self._control)
        if self.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.returncode < 0:
            kill(self._run, self._scratch.path)
        self._scratch.remove()


def kill(run: str, folder: str) -> None:
    """Kill the processes of ``run`` that outlived their supervisor, if ``/proc`` shows them.

    Recognise a process by the run's mark in its environment, or by a working folder, an executable or an open file in
    the run's private ``folder``.
    """
    mark, below = f"{COOKIE}={run}".encode(), os.path.realpath(folder)
    for _ in range(ROUNDS):
        marked = [pid for pid in _pids() if mark in _environment(pid) or _is_in(below, pid)]
        if not marked:
            return
        for pid in marked:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
    except OSError:
        return []


def _is_in(folder: str, pid: int) -> bool:
    links = [f"/proc/{pid}/{name}" for name in ("cwd", "exe")]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd")]
    # Ignore processes that only have the folder itself open: the parent and its forks keep it open as a lock.
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
