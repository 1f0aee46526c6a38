"""Run possibly slow metrics in a separate process, which is killed at a CPU time limit."""

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
_WALL_GUARD_S = 120.0  # a busy machine must not affect a score, so the limit is the child's CPU time


class TookTooLong(ScoringError):
    """A job exceeded the worker's CPU time limit."""


class MetricWorker:
    """Answers questions in a separate process, one at a time; threads may share this object.

    The process starts at the first question and, if it was killed, again at the next question. The process ends when
    ``close`` is called, or when this object or the main process ends.
    """

    def __init__(self, cpu_limit_s: float = CPU_LIMIT_S) -> None:
        self._cpu_limit_s = cpu_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: weakref.finalize[..., MetricWorker] | None = None

    def ask(self, job: str, *arguments: Any) -> Any:
        """Run a job from worker_child.py on ``arguments``, and return its result; both must be JSON values.

        Raises TookTooLong at the time limit. Raises ScoringError if the job fails, if it needs a package that is not
        installed, or if its process ends for another reason.
        """
        question = f"{job}\t{json.dumps(arguments)}\n".encode("ascii")
        with self._lock:
            try:
                reply = _exchange(self._running(), question)
            except BaseException:  # after Ctrl-C, the next question must not receive the answer to this one
                self._forget()
                raise
            if not reply:
                raise self._lost(job)
        kind, value = json.loads(reply)
        if kind != "answer":
            raise ScoringError(f"{job} {value}")
        return value

    def close(self) -> None:
        """End the process; the next question starts a new process."""
        with self._lock:
            self._forget()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._forget()
        return self._process or self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess  # most runs start no worker

        # -P keeps the program's folder, which contains modules of this package, out of sys.path. In a new session, the
        # process does not receive Ctrl-C; it ends with its input.
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
    """Return the worker that all code in this process shares."""
    return _worker_of(os.getpid())


# Workers are stored by process: a fork inherits the parent's worker, with its lock and pipes, and needs a new worker.
@functools.cache
def _worker_of(pid: int) -> MetricWorker:
    return MetricWorker()


def _exchange(process: subprocess.Popen[bytes], question: bytes) -> bytes:
    """Return the line with the answer, or ``b""`` if the process has ended or does not answer."""
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
    if os.getpid() != owner:  # a fork must not end its parent's worker
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # a question that was never read
                continue
