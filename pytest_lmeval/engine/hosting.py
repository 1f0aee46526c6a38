"""Async adapters in a process of their own: the client and the items no longer share one interpreter lock."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, Any

from pytest_lmeval.engine.jobs import Inbox, Job
from pytest_lmeval.engine.policy import Policy
from pytest_lmeval.errors import AdapterError

__all__ = ["HostedTransport"]

_BOOT = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from pytest_lmeval.engine.host import main
main()
"""


class HostedTransport:
    """Sends jobs to a helper process that runs the event loop, and takes the answers from it.

    Worth its start where hundreds of requests are in flight. The adapter must survive pickling.
    """

    def __init__(self, adapter: Any, policy: Policy, inbox: Inbox) -> None:
        self._adapter = adapter
        self._policy = policy
        self._inbox = inbox
        self._jobs: dict[int, Job] = {}
        self._next = 0
        self._process: subprocess.Popen[bytes] | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send jobs, all in one message; a helper that died is replaced."""
        numbered = []
        for job in jobs:
            self._next += 1
            self._jobs[self._next] = job
            numbered.append((self._next, job.requests))
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None
        # Where it died just now, the thread that reads from it answers what it owed.
        with contextlib.suppress(OSError):
            _send(self._process.stdin, numbered)

    def is_stuck(self) -> bool:
        """Tell that it is not: the loop in the helper keeps the time, and a dead helper is noticed at once."""
        return False

    def abandon(self) -> list[Job]:
        """Return nothing: it is never stuck."""
        return []

    def close(self) -> None:
        """Let the helper end, and make sure that it does."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        answers, child_end = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(child_end)], stdin=subprocess.PIPE, pass_fds=(child_end,)
        )
        os.close(child_end)
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(sys.path))
        # Exceptions that stop a run are the caller's; in the helper there is nothing for them to stop.
        _send(process.stdin, (self._adapter, replace(self._policy, passthrough=())))
        reader = threading.Thread(
            target=self._read, args=(os.fdopen(answers, "rb"), process), name="lmeval-answers", daemon=True
        )
        reader.start()
        return process

    def _read(self, answers: IO[bytes], process: subprocess.Popen[bytes]) -> None:
        with answers:
            while True:
                try:
                    arrived = pickle.load(answers)
                except (EOFError, OSError, pickle.UnpicklingError):
                    break
                for number, answer in arrived:
                    self._inbox.deliver(self._jobs.pop(number), answer)
        status = process.wait()
        for number in list(self._jobs):
            job = self._jobs.pop(number)
            error = AdapterError(f"the helper process that asks the model ended with status {status}")
            self._inbox.deliver(job, [error] * len(job.requests))


def _send(stream: IO[bytes], value: object) -> None:
    stream.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    stream.flush()
