"""Fork a confined child for each program, watch the children, and end them.

The server starts as a new process, imports modules that programs commonly need, and confines itself. The server knows a
program's limits and working folder, but not its requests and answers: it passes on their pipes without reading them.
When the process that started the server ends, the server ends all programs and itself.
"""

from __future__ import annotations

import _socket
import array
import gc
import importlib
import marshal
import os
import select
import shutil
import sys
import time

from . import host, shims
from .cage import ENDS, Cage
from .watch import excess, fills_disk, over_cpu
from .wire import NOT_STARTED, OVER_CPU, OVER_DISK, PID_SIZE, STOPPED, exit_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

# Each import takes time, so import these modules once. A fork copies the page tables, so import few large modules.
COMMON = """
abc base64 bisect calendar cmath collections collections.abc contextlib copy csv dataclasses datetime decimal enum
fractions functools hashlib heapq inspect io itertools json math numbers operator os pickle random re shutil stat
statistics string struct tempfile textwrap threading time traceback types typing unicodedata uuid warnings
"""
TICK_MS = 20
IDLE_MS = 1000
LOOK_S = 0.1
# After each look at a program's files, wait for this multiple of the look's duration.
REST = 5
SIGKILL = 9
LARGEST_MESSAGE = 1 << 16
# The descriptors of requests, results, stdout, stderr and the status socket.
HANDED = 5


class Child:
    """A running program."""

    def __init__(self, pid: int, status: int, setup: Mapping[str, Any]) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.status = status
        self.limits: Mapping[str, float] = setup["limits"]
        self.folder: str = setup["folder"]
        self.verdict: int | None = None
        self.look_at = time.monotonic() + LOOK_S

    def check(self) -> None:
        """Kill the program if it exceeds a limit."""
        code = excess(self.pid, self.limits)
        now = time.monotonic()
        if code is None and now >= self.look_at:
            most, largest = self.limits["disk_bytes"], self.limits["file_bytes"]
            code = OVER_DISK if fills_disk(self.pid, self.folder, most, largest) else None
            after = time.monotonic()
            self.look_at = after + max(LOOK_S, REST * (after - now))
        if code is not None and self.verdict is None:
            self.verdict = code
            self.kill()

    def stop(self) -> None:
        """End the program at the parent's request."""
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            self.verdict = self.verdict or STOPPED
            self.kill()

    def kill(self) -> None:
        """Kill the program; no other process can have its id, because it has not been reaped."""
        os.kill(self.pid, SIGKILL)

    def end(self) -> None:
        """Wait for the program, which has ended or will end soon, and report its status."""
        used_up = over_cpu(self.pid, self.limits)
        code = exit_code(os.waitpid(self.pid, 0)[1])
        _report(self.status, OVER_CPU if used_up else self.verdict or code)
        os.close(self.pidfd)


class Server:
    """Serves the requests from the parent's socket, and watches the programs."""

    def __init__(self, control: _socket.socket, cage: Cage) -> None:
        self.control = control
        self.cage = cage
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLIN)
        self.by_status: dict[int, Child] = {}
        self.by_pidfd: dict[int, Child] = {}

    def run(self) -> None:
        """Serve until the parent ends, then end all programs."""
        owner = os.getppid()
        while os.getppid() == owner:
            for fd, _ in self.poll.poll(TICK_MS if self.by_pidfd else IDLE_MS):
                if not self._handle(fd):
                    return self._end_all()
            for child in self.by_pidfd.values():
                child.check()
        return self._end_all()

    def _handle(self, fd: int) -> bool:
        if fd == self.control.fileno():
            return self._accept()
        if fd in self.by_pidfd:
            self._reap(self.by_pidfd[fd])
        elif fd in self.by_status:
            # The parent closed or shut down its end of the socket.
            self.poll.unregister(fd)
            self.by_status.pop(fd).stop()
        return True

    def _accept(self) -> bool:
        message, fds = _receive(self.control)
        if not message:
            return False
        if len(fds) != HANDED:
            # The table of open files is full; the parent notices that its pipes are closed.
            for fd in fds:
                os.close(fd)
            return True
        *pipes, status = fds
        self._start(marshal.loads(message), pipes, status)
        return True

    def _start(self, setup: Mapping[str, Any], pipes: Sequence[int], status: int) -> None:
        server = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            _become_program(self.cage, setup, pipes, server)
        for fd in pipes:
            os.close(fd)
        if pid < 0:
            return _report(status, NOT_STARTED)
        _send(status, pid.to_bytes(PID_SIZE, sys.byteorder))
        child = Child(pid, status, setup)
        self.by_pidfd[child.pidfd] = self.by_status[status] = child
        self.poll.register(child.pidfd, select.POLLIN)
        self.poll.register(status, select.POLLIN)
        return None

    def _reap(self, child: Child) -> None:
        del self.by_pidfd[child.pidfd]
        self.poll.unregister(child.pidfd)
        if self.by_status.pop(child.status, None):
            self.poll.unregister(child.status)
        child.end()

    def _end_all(self) -> None:
        for child in self.by_pidfd.values():
            child.kill()
        for child in list(self.by_pidfd.values()):
            self._reap(child)


def main(control: int) -> NoReturn:
    """Confine this process, report the missing layers, and serve programs until the parent ends."""
    _occupy_low_descriptors()
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, control)
    setup = marshal.loads(_receive(sock)[0])
    for name in COMMON.split():
        importlib.import_module(name)
    sys.path += setup["path"]
    cage = Cage(setup["root"], setup["links"], setup["packages"])
    missing = cage.close_server()
    sock.send(marshal.dumps(missing))
    if not missing:
        gc.collect()
        gc.freeze()
        Server(sock, cage).run()
        # Normally, the parent removes this folder.
        shutil.rmtree(setup["root"], ignore_errors=True)
    os._exit(0)


def _occupy_low_descriptors() -> None:
    """Occupy the descriptor numbers of a program's pipes, so that the server's own descriptors get other numbers."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < ENDS:
        pass
    os.close(fd)


def _receive(sock: _socket.socket) -> tuple[bytes, list[int]]:
    item = array.array("i").itemsize
    message, ancillary, _, _ = sock.recvmsg(LARGEST_MESSAGE, _socket.CMSG_SPACE(HANDED * item))
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data[: len(data) - len(data) % item])
    return message, list(fds)


def _report(status: int, code: int) -> None:
    _send(status, bytes([code]))
    os.close(status)


def _send(status: int, message: bytes) -> None:
    try:
        os.write(status, message)
    except OSError:
        # The parent has closed its end of the socket.
        return


def _become_program(cage: Cage, setup: Mapping[str, Any], pipes: Sequence[int], server: int) -> NoReturn:
    try:
        os.setsid()
        request, result, stdout, stderr = pipes
        # Open the file again: programs would share the locks and modes of the server's descriptor.
        stdin = os.open(os.devnull, os.O_RDWR)
        # The received descriptors have higher numbers, so this overwrites none of them.
        for target, fd in enumerate((stdin, stdout, stderr, request, result)):
            os.dup2(fd, target, inheritable=False)
        folder = setup["folder"]
        os.chdir(folder)
        os.environ.update({"HOME": folder, "TMPDIR": folder})
        shims.install(folder)
        missing = cage.close_program(folder, setup["limits"], server)
        host.serve(3, 4, missing)
    finally:
        os._exit(NOT_STARTED)
