"""Runs of pytest as forks of a server that has done the imports; each stands in for a ``subprocess.Popen``."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

SERVER = Path(__file__).with_name("fork_server.py")
# Python reads these at its start, so a run for which they were changed has to start a Python.
READ_AT_START = ("COVERAGE_", "LANG", "LC_", "LD_", "MALLOC_", "PYTHON")


class Fork:
    """What ``pytester`` uses of a ``subprocess.Popen``."""

    stdin = None

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.pid = self._number(None)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the number of the signal that ended the run."""
        try:
            return self._number(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("pytest", timeout or 0) from None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def _number(self, timeout: float | None) -> int:
        self._connection.settimeout(timeout)
        answer = self._connection.recv(4, socket.MSG_WAITALL)
        assert 4 == len(answer), "the server that forks runs of pytest has ended"
        return int.from_bytes(answer, signed=True)


class ForkServer:
    """Starts runs of pytest, one at a time. The server itself is started with the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection, self._theirs = socket.socketpair()
        self._started_with = _read_at_start()

    def popen(
        self, start: Callable[..., Any], command: Sequence[str], *, stdout: IO[str], stderr: IO[str], **rest: Any
    ) -> Any:
        """Fork a run of pytest with an empty stdin; ``start`` what a fork cannot be."""
        python, module, *arguments = command
        if (python, module) != (sys.executable, "-mpytest") or self._started_with != _read_at_start():
            return start(command, stdout=stdout, stderr=stderr, **rest)
        self._process = self._process or self._start()
        path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        run = {"arguments": arguments, "folder": os.getcwd(), "environment": {**os.environ, "PYTHONPATH": path}}
        request = json.dumps(run).encode()
        socket.send_fds(self._connection, [len(request).to_bytes(4)], [stdout.fileno(), stderr.fileno()])
        self._connection.settimeout(None)
        self._connection.sendall(request)
        return Fork(self._connection)

    def close(self) -> None:
        self._connection.close()
        self._theirs.close()
        if self._process is not None:
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._theirs.fileno()
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(number)],
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the tests
        )
        self._theirs.close()
        return process


def _read_at_start() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if name.startswith(READ_AT_START) and name != "PYTHONPATH"}
