"""The process that does algebra: started when first needed, asked one pair at a time, killed when it takes too long."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import threading
import weakref
from pathlib import Path

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.math_parse import Tree

__all__ = ["CPU_LIMIT_S", "MathWorker"]

CPU_LIMIT_S = 5.0

_PROGRAM = Path(__file__).with_name("math_child.py")
_WALL_GUARD_S = 120.0  # a machine that is busy must not decide a score: the limit is the child's CPU time


class MathWorker:
    """Answers whether two trees are equal; ``close`` it, or let it be collected, to end its process."""

    def __init__(self, cpu_limit_s: float = CPU_LIMIT_S) -> None:
        self._cpu_limit_s = cpu_limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stop: weakref.finalize[..., MathWorker] | None = None

    def ask(self, left: Tree, right: Tree, *, decimal: bool) -> str:
        """Return ``equal``, ``different``, ``undecided`` or ``timeout``; raise ScoringError where sympy is missing."""
        with self._lock:
            process = self._process or self._start()
            answer = _exchange(process, json.dumps([left, right, decimal]))
            if not answer:
                self._forget()
            return answer or "timeout"

    def close(self) -> None:
        """End the process, if there is one; the next question starts another."""
        with self._lock:
            self._forget()

    def _start(self) -> subprocess.Popen[bytes]:
        # -P: the folder of the program, where modules of the package lie, is no place to import sympy's needs from.
        # A session of its own: Ctrl-C is the run's to handle, and the end of its input ends the process anyway.
        process = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM), str(self._cpu_limit_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process, self._stop = process, weakref.finalize(self, _end, process)
        greeting = _read_line(process)
        if greeting != "ready":
            self._forget()
            problem = "needs sympy: pip install 'pytest-lmeval[math]'" if greeting == "missing" else "did not start"
            raise ScoringError(f"math_equal {problem}")
        return process

    def _forget(self) -> None:
        if self._stop is not None:
            self._stop()
        self._process = self._stop = None


def _exchange(process: subprocess.Popen[bytes], question: str) -> str:
    assert process.stdin is not None
    try:
        process.stdin.write(f"{question}\n".encode("ascii"))
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return _read_line(process)


def _read_line(process: subprocess.Popen[bytes]) -> str:
    """Return the next line; ``""`` where the process has ended or does not answer."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _WALL_GUARD_S)
    return process.stdout.readline().decode("ascii").strip() if ready else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # a question that was never read
                continue
