"""One child from its start to its end, seen from the parent."""

from __future__ import annotations

import contextlib
import marshal
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.sandbox import scratch, strays, values
from pytest_lmeval.sandbox.inside import exits, wire
from pytest_lmeval.sandbox.levels import Level
from pytest_lmeval.sandbox.pipes import Pipes
from pytest_lmeval.sandbox.results import CodeStatus, Limits

__all__ = ["ProgramEndError", "Session"]

# The folder `inside` becomes a package of its own, so that the child imports nothing else of this one.
BOOT = """\
import sys
package = type(sys)("_lmeval_inside")
package.__path__ = [sys.argv[1]]
sys.modules["_lmeval_inside"] = package
from _lmeval_inside.supervisor import main
main(*map(int, sys.argv[2:]))
"""
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
GRACE_S = 7.0
NOTICE_S = 0.2
# Needed to start an interpreter that is not where its libraries are.
KEPT = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH")


class ProgramEndError(Exception):
    """The program can answer no more: ``status`` says what to call it, the text why."""

    def __init__(self, status: CodeStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Session:
    """A supervisor and its program; as a context manager it leaves no process and no file behind."""

    def __init__(self, level: Level, limits: Limits) -> None:
        self._level = level
        self._limits = limits
        self._run = secrets.token_hex(16)
        self._fds = contextlib.ExitStack()
        self._outgoing = bytearray()
        self._ready = False
        self._closed = False
        self._deadline = time.monotonic() + limits.hang_guard_s
        self._scratch = scratch.make()
        try:
            self._start()
        except OSError as error:
            self._fds.close()
            scratch.remove(self._scratch)
            raise SandboxError(f"no process for {sys.executable!r}: {error}") from error

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pipes(self) -> Pipes:
        """What the program wrote."""
        return self._pipes

    def _start(self) -> None:
        with contextlib.ExitStack() as theirs:
            request_end, request = self._pipe(theirs, self._fds)
            control_end, self._control = self._pipe(theirs, self._fds)
            result, result_end = self._pipe(self._fds, theirs)
            stdout, stdout_end = self._pipe(self._fds, theirs)
            stderr, stderr_end = self._pipe(self._fds, theirs)
            self._pipes = Pipes(request, result, stdout, stderr, self._limits.output_bytes)
            handed = (request_end, result_end, control_end)
            self._process = subprocess.Popen(
                # Not -I, which would ignore PYTHONHASHSEED; -P keeps the folder it is started in out of sys.path.
                [sys.executable, "-s", "-S", "-P", "-c", BOOT, INSIDE, *map(str, handed)],
                stdin=subprocess.DEVNULL,
                stdout=stdout_end,
                stderr=stderr_end,
                pass_fds=handed,
                cwd=self._scratch,
                env=_environment(self._scratch, self._run),
                start_new_session=True,
            )
        layers = [layer.name for layer in self._level.layers]
        # At once: the supervisor hears nothing else before it has this, and an empty pipe takes it whole.
        with contextlib.suppress(BrokenPipeError):
            os.write(request, _request({"layers": layers, "limits": asdict(self._limits)}))

    @staticmethod
    def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
        outlet, inlet = os.pipe()
        reader.callback(os.close, outlet)
        writer.callback(os.close, inlet)
        return outlet, inlet

    def ask(self, message: Mapping[str, Any] | list[Any]) -> list[Any]:
        """Send one request and return the answer to it; raise `ProgramEndError` if there is none.

        The answer is a list whose first item is its kind. One that is not what a program in good faith sends has
        the kind ``unfit``.
        """
        self._outgoing += _request(message)
        if not self._ready:
            self._become_ready()
        return _parse(self._frame())

    def _become_ready(self) -> None:
        try:
            kind, *parts = _parse(self._frame())
        except ProgramEndError as ended:
            raise SandboxError(f"the sandbox did not start: {ended}; {self._pipes.stderr.text[-500:]}") from None
        if kind != "ready":
            raise SandboxError(f"level {self._level.name!r}: layer {': '.join(map(str, parts))}")
        self._ready = True

    def _frame(self) -> bytes:
        results = self._pipes.results
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
        while len(self._pipes.results) < size:
            self._advance()

    def _advance(self) -> None:
        if self._pipes.ended or (self._process.poll() is not None and not self._more()):
            raise self._end()
        if time.monotonic() >= self._deadline:
            self.close()
            raise ProgramEndError("timeout", f"no end after {self._limits.hang_guard_s:g} s of wall time")
        del self._outgoing[: self._pipes.step(self._deadline, self._outgoing)]

    def _more(self) -> bool:
        before = len(self._pipes.results)
        self._pipes.step(self._deadline, longest_s=0.0)
        return len(self._pipes.results) > before

    def _end(self) -> ProgramEndError:
        # The pipe ends a moment before the process does, and only the supervisor can tell how that was.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(NOTICE_S)
        self.close()
        code = self._process.returncode
        if code == exits.OVER_CPU:
            return ProgramEndError("timeout", f"over the limit of {self._limits.cpu_s:g} s of CPU time")
        if code == exits.OVER_PROCESSES:
            return ProgramEndError("error", f"over the limit of {self._limits.processes} processes")
        return ProgramEndError("error", f"the program {_exit_text(code)} before it answered")

    def close(self) -> None:
        """End everything that belongs to this run; what it wrote stays readable."""
        if self._closed:
            return
        self._closed = True
        with self._fds:
            self._stop()
        scratch.remove(self._scratch)

    def _stop(self) -> None:
        """Tell the supervisor to end, and see to it that it does."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, b".")
        give_up = time.monotonic() + GRACE_S
        while not self._pipes.drained and self._process.poll() is None and time.monotonic() < give_up:
            self._pipes.step(give_up)
        try:
            self._process.wait(max(0.0, give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.returncode < 0:
            strays.kill(self._run)
        while self._more_output():
            pass

    def _more_output(self) -> bool:
        before = self._pipes.stdout.total + self._pipes.stderr.total
        self._pipes.step(time.monotonic(), longest_s=0.0)
        return self._pipes.stdout.total + self._pipes.stderr.total > before


def _environment(folder: str, run: str) -> dict[str, str]:
    """Return all that the child has in its environment: nothing of the user's, and the same on every machine."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "HOME": folder,
        "LANG": "C.UTF-8",
        # Each further arena takes 64 MiB of address space, which is limited.
        "MALLOC_ARENA_MAX": "2",
        "PATH": os.defpath,
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        "PYTHONUTF8": "1",
        "TMPDIR": folder,
        "TZ": "UTC",
        strays.COOKIE: run,
    }


def _request(message: Any) -> bytes:
    return wire.frame(marshal.dumps(message))


def _exit_text(code: int) -> str:
    if code == exits.STOPPED:
        return "closed the result pipe"
    if code < 0:
        return "killed its supervisor"
    if code > exits.SIGNALLED:
        return f"was killed by signal {code - exits.SIGNALLED}"
    return f"exited with status {code}"


def _parse(payload: bytes) -> list[Any]:
    try:
        return values.parse(payload)
    except ValueError as error:
        return ["unfit", f"not an answer: {error}"[:200]]
