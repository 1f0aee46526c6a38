"""Async adapters in a process of their own: the client and the items no longer share one interpreter lock."""

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
# Ctrl-C reaches the whole process group; the parent decides what becomes of this process.
_BOOT = """
import pickle, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = pickle.load(sys.stdin.buffer)
from pytest_lmeval.asking.host import main
main()
"""
_OF_A_TEST = "PYTEST_CURRENT_TEST"


class HelperProcess:
    """A process that waits for the adapter that it is to ask, and imports ``modules`` until it has one."""

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
        """Whether it is alive and has the variables and the working folder that a new process would have."""
        return self.process.poll() is None and self._surroundings == _surroundings()

    def begin(self, adapter: Any, policy: Policy) -> None:
        """Have it ask ``adapter``; jobs may follow."""
        # Exceptions that stop a run are the caller's; in the helper there is nothing for them to stop.
        self.received = time.monotonic()
        self.send(sys.path, (adapter, replace(policy, passthrough=())))

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self.process.kill()
        # What it has not read is still to be sent.
        with contextlib.suppress(OSError):
            self.stdin.close()
        self.process.wait()
        self.answers.close()

    def send(self, *values: object) -> None:
        """Send values, each as a message; if the process has just died, the thread that reads from it finds out."""
        with contextlib.suppress(OSError):
            for value in values:
                self.stdin.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
                self.stdin.flush()


class Spares:
    """Helper processes that are begun before it is known which engines need one, each with ``modules`` of its own.

    ``close`` ends those that no engine took. After the first one that cannot be started no other is.
    """

    def __init__(self, modules: Sequence[Sequence[str]]) -> None:
        self._left: list[HelperProcess] = []
        # One that cannot be started fails when it is needed, and the run says so.
        with contextlib.suppress(OSError):
            for each in modules:
                self._left.append(HelperProcess(each))

    def take(self) -> HelperProcess:
        """Return one of them, or a new one where none is left that is fit for use."""
        while spare := self._pop():
            if spare.is_fit:
                return spare
            spare.close()
        return HelperProcess()

    def close(self) -> None:
        """End what is left."""
        while spare := self._pop():
            spare.close()

    def _pop(self) -> HelperProcess | None:
        # Engines may take theirs in several threads.
        try:
            return self._left.pop(0)
        except IndexError:
            return None


def _surroundings() -> tuple[dict[str, str], str]:
    variables = {name: value for name, value in os.environ.items() if name != _OF_A_TEST}
    try:
        return variables, os.getcwd()
    except OSError:  # such as that of a folder that was removed
        return variables, ""


class HostedTransport:
    """Sends jobs to a helper process that runs the event loop, and takes the answers from it.

    Worth its start where many requests are in flight. The adapter must survive pickling. ``start`` returns a new
    helper process, or one that was begun ahead.
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
        """Send jobs, all in one message; a helper that died is replaced."""
        if self._helper is None or self._helper.process.poll() is not None:
            self._helper = self._start()
        numbered = []
        for job in jobs:
            self._numbers += 1
            self._helper.jobs[self._numbers] = job
            numbered.append((self._numbers, job.requests))
        self._helper.send(numbered)

    def is_stuck(self) -> bool:
        """Return whether the helper has unanswered jobs and has sent no message for too long."""
        helper = self._helper
        if helper is None or not helper.jobs:
            return False
        return time.monotonic() - helper.received > self._policy.timeout_s + _GRACE_S

    @property
    def wait(self) -> Wait | None:
        """What all requests in the helper's hands wait for, if they do."""
        return None if self._helper is None else self._helper.wait

    def abandon(self) -> list[Job]:
        """End the helper and answer all it owed with AdapterTimeout: which of it was begun only the helper knew."""
        if self._helper is not None:
            timeout = AdapterTimeout("the helper process that asks the model hangs")
            for job in list(self._helper.jobs.values()):
                self._inbox.deliver(job, [timeout] * len(job.requests))
            self._helper.process.kill()
        return []

    def close(self) -> None:
        """Let the helper end, and make sure that it does."""
        if self._helper is None:
            return
        process = self._helper.process
        try:
            self._helper.stdin.close()
            process.wait(timeout=_GRACE_S)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()

    def _start(self) -> HelperProcess:
        helper = self._new_process()
        helper.begin(self._adapter, self._policy)
        threading.Thread(target=self._read, args=(helper,), name="lmeval-answers", daemon=True).start()
        return helper

    def _read(self, helper: HelperProcess) -> None:
        # Whatever goes wrong in here, what the helper owes has to be answered, or a run would wait for ever.
        with contextlib.suppress(Exception):
            while True:
                arrived, helper.wait = pickle.load(helper.answers)
                helper.received = time.monotonic()
                for number, answer in arrived:
                    self._inbox.deliver(helper.jobs.pop(number), answer)
        helper.close()
        error = AdapterError(f"the helper process that asks the model ended with status {helper.process.returncode}")
        for number in list(helper.jobs):
            job = helper.jobs.pop(number)
            self._inbox.deliver(job, [error] * len(job.requests))
