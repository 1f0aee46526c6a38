"""Run async adapters in a helper process, so that the adapter and the test items do not share an interpreter lock."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.asking.policy import Policy, Wait
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError, AdapterTimeout

_GRACE_S = 5.0
# Ctrl-C reaches the whole process group, but the parent decides when this process ends.
_BOOT = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = pickle.load(sys.stdin.buffer)
from pytest_lmeval.asking.host import main
main()
"""
_OF_A_TEST = "PYTEST_CURRENT_TEST"


class HelperProcess:
    """A process that queries a model; before it receives an adapter, it imports ``modules``.

    ``jobs`` holds the unanswered jobs by number. ``received`` is the time of the process's last message. If all
    requests of the process are waiting, ``wait`` is the wait that ends first.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._surroundings = _surroundings()
        self.jobs: dict[int, Job] = {}
        self.received = time.monotonic()
        self.wait: Wait | None = None
        answers, child_end = os.pipe()
        command = [sys.executable, "-c", _BOOT, str(child_end)]
        self.answers = os.fdopen(answers, "rb")
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(child_end,))
        except BaseException:
            self.answers.close()
            raise
        finally:
            os.close(child_end)
        assert self.process.stdin is not None
        self.stdin = self.process.stdin
        self.send(sys.path, modules)

    @property
    def is_fit(self) -> bool:
        """True if the process is alive, and has the current process's environment variables and working folder."""
        return self.process.poll() is None and self._surroundings == _surroundings()

    def begin(self, adapter: Any, policy: Policy) -> None:
        """Send the adapter to the process, which then accepts jobs."""
        # The parent handles exceptions that stop a run.
        self.received = time.monotonic()
        self.send(sys.path, (adapter, replace(policy, passthrough=())))

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self.process.kill()
        # Closing flushes unread messages.
        with contextlib.suppress(OSError):
            self.stdin.close()
        self.process.wait()
        self.answers.close()

    def send(self, *values: object) -> None:
        """Send each value as a message; ignore a broken pipe, because the reading thread notices a dead process."""
        with contextlib.suppress(OSError):
            for value in values:
                self.stdin.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
                self.stdin.flush()


class Spares:
    """Helper processes that start before an engine needs them; each process imports different ``modules``.

    ``close`` ends the unused processes. If a process fails to start, the constructor starts no further process.
    """

    def __init__(self, modules: Sequence[Sequence[str]]) -> None:
        self._left: list[HelperProcess] = []
        # A start on demand will fail again, and the run will report it.
        with contextlib.suppress(OSError):
            for each in modules:
                self._left.append(HelperProcess(each))

    def take(self) -> HelperProcess:
        """Return an unused process; if no process is usable, start a new process."""
        while spare := self._pop():
            if spare.is_fit:
                return spare
            spare.close()
        return HelperProcess()

    def close(self) -> None:
        """End the unused processes."""
        while spare := self._pop():
            spare.close()

    def _pop(self) -> HelperProcess | None:
        # Engines may call this from several threads.
        try:
            return self._left.pop(0)
        except IndexError:
            return None


def _surroundings() -> tuple[dict[str, str], str]:
    variables = {name: value for name, value in os.environ.items() if name != _OF_A_TEST}
    try:
        return variables, os.getcwd()
    except OSError:  # the folder was removed
        return variables, ""


class HostedTransport:
    """Sends jobs to a helper process, which runs the event loop, and receives the answers.

    A helper process saves time only if many requests are in flight. The adapter must be picklable. ``start`` returns a
    new or unused helper process.
    """

    def __init__(
        self, adapter: Any, policy: Policy, inbox: Inbox, start: Callable[[], HelperProcess] = HelperProcess
    ) -> None:
        self._adapter = adapter
        self._policy = policy
        self._inbox = inbox
        self._new_process = start
        self._numbers = 0
        self._helper: HelperProcess | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send jobs in one message; if the helper process has died, start another."""
        if self._helper is None or self._helper.process.poll() is not None:
            self._helper = self._new_process()
            self._helper.begin(self._adapter, self._policy)
            threading.Thread(target=self._read, args=(self._helper,), name="lmeval-answers", daemon=True).start()
        numbered = []
        for job in jobs:
            self._numbers += 1
            self._helper.jobs[self._numbers] = job
            numbered.append((self._numbers, job.requests))
        self._helper.send(numbered)

    def is_stuck(self) -> bool:
        """Return True if the helper process has unanswered jobs, but has sent no message for too long."""
        helper = self._helper
        if helper is None or not helper.jobs:
            return False
        return time.monotonic() - helper.received > self._policy.timeout_s + _GRACE_S

    @property
    def wait(self) -> Wait | None:
        """The wait that ends first; None unless all requests of the helper process are waiting."""
        return None if self._helper is None else self._helper.wait

    def abandon(self) -> list[Job]:
        """Kill the helper, which alone knew which jobs had begun, and answer all its jobs with AdapterTimeout."""
        if self._helper is not None:
            timeout = AdapterTimeout("the helper process that sends the requests does not respond")
            for job in list(self._helper.jobs.values()):
                self._inbox.deliver(job, [timeout] * len(job.requests))
            self._helper.process.kill()
        return []

    def close(self) -> None:
        """Close the helper's stdin, so that it ends; kill the helper if it does not end in time."""
        if self._helper is None:
            return
        process = self._helper.process
        try:
            self._helper.stdin.close()
            process.wait(timeout=_GRACE_S)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()

    def _read(self, helper: HelperProcess) -> None:
        # Answer the helper's jobs after any failure here, or the run would wait forever.
        with contextlib.suppress(Exception):
            while True:
                arrived, helper.wait = pickle.load(helper.answers)
                helper.received = time.monotonic()
                for number, answer in arrived:
                    self._inbox.deliver(helper.jobs.pop(number), answer)
        helper.close()
        error = AdapterError(
            f"the helper process that sends the requests ended with status {helper.process.returncode}"
        )
        for number in list(helper.jobs):
            job = helper.jobs.pop(number)
            self._inbox.deliver(job, [error] * len(job.requests))
