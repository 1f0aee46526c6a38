"""The process that works for metrics whose time their input decides: it is killed at a limit of CPU time."""

from __future__ import annotations

import functools
import json
import os
import select
import signal
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import ScoringError

if TYPE_CHECKING:
    import subprocess

CPU_LIMIT_S = 5.0

_PROGRAM = Path(__file__).with_name("worker_child.py")
_WALL_GUARD_S = 120.0  # a machine that is busy must not decide a score: the limit is the child's CPU time


class TookTooLong(ScoringError):
    """A question took more CPU time than a question may."""


class MetricWorker:
    """Answers questions in a process of its own, one at a time; threads may share it.

    The process starts with the first question, and anew with the first one after it was killed. It ends with
    ``close``, with this object, or with this process, however that ends.
    """

    def __init__(self, cpu_limit_s: float = CPU_LIMIT_S) -> None:
        self._cpu_limit_s = cpu_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: weakref.finalize[..., MetricWorker] | None = None

    def ask(self, job: str, *arguments: Any) -> Any:
        """Return what the job gives for ``arguments``; both are JSON, and the jobs are listed in worker_child.py.

        Raises TookTooLong at the limit; ScoringError where the job fails, needs a package that is not installed, or
        its process ends otherwise.
        """
        question = f"{job}\t{json.dumps(arguments)}\n".encode("ascii")
        with self._lock:
            try:
                reply = _exchange(self._running(), question)
            except BaseException:  # after Ctrl-C an answer is on its way that no later question may take for its own
                self._forget()
                raise
            if not reply:
                raise self._lost(job)
        kind, value = json.loads(reply)
        if kind != "answer":
            raise ScoringError(f"{job} {value}")
        return value

    def close(self) -> None:
        """End the process, if there is one; the next question starts another."""
        with self._lock:
            self._forget()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._forget()
        return self._process or self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess  # most runs start none

        # -P: the folder of the program, where modules of the package lie, is no place to import other packages from.
        # A session of its own: Ctrl-C is the run's to handle, and the end of its input ends the process anyway.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), str(self._cpu_limit_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process, self._stop = process, weakref.finalize(self, _end, process, os.getpid())
        return process

    def _lost(self, job: str) -> ScoringError:
        process = self._process
        self._forget()
        code = process.returncode if process is not None else None
        if code == -signal.SIGPROF:
            return TookTooLong(f"{job} took more than {self._cpu_limit_s:g} s of CPU time")
        if code == -signal.SIGKILL:
            return ScoringError(f"{job}: its process was killed, or gave no answer in {_WALL_GUARD_S:g} s")
        return ScoringError(f"{job}: its process ended with exit code {code}")

    def _forget(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


def shared_worker() -> MetricWorker:
    """Return the one worker of this process."""
    return _worker_of(os.getpid())


# By the process: a fork has the parent's worker in memory, with its lock and its pipes as they were, and needs its own.
@functools.cache
def _worker_of(pid: int) -> MetricWorker:
    return MetricWorker()


def _exchange(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """Return the line that answers; ``b""`` where the process has ended or does not answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question)
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    ready, _, _ = select.select([process.stdout], [], [], _WALL_GUARD_S)
    return process.stdout.readline() if ready else b""


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork that ends must not end its parent's
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # a question that was never read
                continue
