"""Control one program from its start to its end, from the parent process."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.sandbox import values
from pytest_lmeval.sandbox.boot import frame
from pytest_lmeval.sandbox.forkserver import ForkLauncher
from pytest_lmeval.sandbox.fresh import FreshLauncher
from pytest_lmeval.sandbox.idle import Idleness
from pytest_lmeval.sandbox.inside import wire
from pytest_lmeval.sandbox.levels import Ends
from pytest_lmeval.sandbox.pipes import Pipes
from pytest_lmeval.sandbox.results import CodeStatus, Limits

GRACE_S = 7.0
NOTICE_S = 0.2
MOST_ROOM = 32 * 1024 * 1024
Launcher = ForkLauncher | FreshLauncher


class ProgramEndError(Exception):
    """The program has ended; ``status`` is the run's status, and the message gives the reason."""

    def __init__(self, status: CodeStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Session:
    """A program and its pipes; as a context manager, a session leaves no process and no file behind."""

    def __init__(self, launcher: Launcher, limits: Limits) -> None:
        self._limits = limits
        self._fds = contextlib.ExitStack()
        self._outgoing = bytearray()
        self._ready = False
        self._closed = False
        self._kept = 0
        self._idle = Idleness(limits.idle_s, limits.waits_s)
        self._deadline = time.monotonic() + limits.hang_guard_s
        try:
            self._start(launcher)
        except SandboxError:
            self._fds.close()
            raise
        except OSError as error:
            self._fds.close()
            raise SandboxError(f"no pipes for a program: {error}") from error

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, launcher: Launcher) -> None:
        with contextlib.ExitStack() as theirs:
            request_end, request = self._pipe(theirs, self._fds)
            result, result_end = self._pipe(self._fds, theirs)
            stdout, stdout_end = self._pipe(self._fds, theirs)
            stderr, stderr_end = self._pipe(self._fds, theirs)
            self.pipes = Pipes(request, result, stdout, stderr, self._limits.output_bytes)
            self._child = launcher.launch(self._limits, Ends(request_end, result_end, stdout_end, stderr_end))
        self.denies = self._child.denies
        # Write the preamble at once: the child reads it first, and it fits into an empty pipe.
        with contextlib.suppress(BrokenPipeError):
            os.write(request, self._child.preamble)

    @staticmethod
    def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
        outlet, inlet = os.pipe()
        reader.callback(os.close, outlet)
        writer.callback(os.close, inlet)
        return outlet, inlet

    def ask(self, message: Mapping[str, Any] | list[Any], *, keep: bool = False) -> list[Any]:
        """Send one request and return the answer; raise `ProgramEndError` if the program ends first.

        The answer is a list that begins with its kind. A malformed answer has the kind ``unfit``, as does an answer
        that would take too much memory together with the answers that the caller chose to ``keep``.
        """
        self._outgoing += frame(message)
        if not self._ready:
            self._become_ready()
        payload = self._frame()
        room = values.room(payload)
        if self._kept + room > MOST_ROOM:
            return ["unfit", f"not an answer: more values than fit into {MOST_ROOM} bytes"]
        self._kept += room if keep else 0
        return _parse(payload)

    def _become_ready(self) -> None:
        try:
            kind, *parts = _parse(self._frame())
        except ProgramEndError as ended:
            raise SandboxError(f"the sandbox did not start: {ended}; {self.pipes.stderr.text[-500:]}") from None
        if kind != "ready":
            raise SandboxError(f"layer {': '.join(map(str, parts))}")
        self._ready = True

    def _frame(self) -> bytes:
        results = self.pipes.results
        self._idle.restart()
        self._await(wire.PREFIX)
        size = int.from_bytes(results[: wire.PREFIX], "big")
        if size > wire.MAX_FRAME:
            self.close()
            raise ProgramEndError("error", "the program wrote to the result pipe itself")
        self._await(wire.PREFIX + size)
        payload = bytes(results[wire.PREFIX : wire.PREFIX + size])
        del results[: wire.PREFIX + size]
        return payload

    def _await(self, size: int) -> None:
        while len(self.pipes.results) < size:
            self._advance()

    def _advance(self) -> None:
        if self.pipes.ended or (self._child.poll() is not None and not self._more()):
            raise self._end()
        if time.monotonic() >= self._deadline:
            self.close()
            raise ProgramEndError("timeout", f"no end after {self._limits.hang_guard_s:g} s of wall time")
        if self._idle.due and (reason := self._idle.look(self._child.processes(), self.pipes.received)):
            self.close()
            raise ProgramEndError("timeout", reason)
        del self._outgoing[: self.pipes.step(self._deadline, self._outgoing)]

    def _more(self) -> bool:
        before = len(self.pipes.results)
        self.pipes.step(self._deadline, longest_s=0.0)
        return len(self.pipes.results) > before

    def _end(self) -> ProgramEndError:
        # The pipe ends a moment before the process, so wait for the exit status, which gives the reason.
        self._child.wait(NOTICE_S)
        self.close()
        return ProgramEndError(*_ending(self._child.returncode, self._limits))

    def close(self) -> None:
        """End all of the program's processes; its output stays readable."""
        if self._closed:
            return
        self._closed = True
        with self._fds:
            try:
                self._stop()
            finally:
                self._child.close()
            seen = -1
            while seen < self.pipes.received:
                seen = self.pipes.received
                self.pipes.step(time.monotonic(), longest_s=0.0)

    def _stop(self) -> None:
        self._child.stop()
        self.pipes.ended = True
        give_up = time.monotonic() + GRACE_S
        while not self.pipes.drained and self._child.poll() is None and time.monotonic() < give_up:
            self.pipes.step(give_up)
        self._child.wait(max(0.0, give_up - time.monotonic()))


def _ending(code: int | None, limits: Limits) -> tuple[CodeStatus, str]:
    over: dict[int, tuple[CodeStatus, str]] = {
        wire.OVER_CPU: ("timeout", f"over the limit of {limits.cpu_s:g} s of CPU time"),
        wire.OVER_DISK: ("error", f"over the limit of {limits.disk_bytes} bytes in files"),
        wire.OVER_PROCESSES: ("error", f"over the limit of {limits.processes} processes"),
        wire.OVER_THREADS: ("error", "over the limit on threads"),
        wire.STOPPED: ("error", "the program closed the result pipe before it answered"),
    }
    if code in over:
        return over[code]
    return "error", f"the program {_exit_text(code)} before it answered"


def _exit_text(code: int | None) -> str:
    if code is None or code < 0:
        return "killed its supervisor"
    if code > wire.SIGNALLED:
        return f"was killed by {_signal_text(code - wire.SIGNALLED)}"
    return f"exited with status {code}"


def _signal_text(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    # The filter answers most denied calls with an error; it ends the program only for another architecture's calls.
    return f"signal {number}, {name}" + (" (a denied system call)" if name == "SIGSYS" else "")


def _parse(payload: bytes) -> list[Any]:
    try:
        return values.parse(payload)
    except ValueError as error:
        return ["unfit", f"not an answer: {error}"[:200]]
