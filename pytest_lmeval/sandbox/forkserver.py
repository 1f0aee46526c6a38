"""Fork programs from one server process; the kernel confines each program."""

from __future__ import annotations

import contextlib
import itertools
import marshal
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence

from pytest_lmeval.errors import SandboxError
from pytest_lmeval.sandbox import scratch
from pytest_lmeval.sandbox.boot import command, environment
from pytest_lmeval.sandbox.inside import wire
from pytest_lmeval.sandbox.levels import Ends
from pytest_lmeval.sandbox.packages import Package
from pytest_lmeval.sandbox.results import Limits

START_S = 60.0
END_S = 5.0
LARGEST_MESSAGE = 1 << 16
PACKAGES = "packages"
# The probes try to access this file, which no program may access.
CANARY = "canary"
LOST = -1


class MissingLayersError(SandboxError):
    """The server could not confine itself; ``layers`` holds the name of each missing layer, with the reason."""

    def __init__(self, layers: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"layer {name}: {why}" for name, why in layers))
        self.layers = tuple(layers)


class ForkLauncher:
    """Starts a server with the first program, uses it for further programs, and replaces a server that died."""

    def __init__(self, packages: Sequence[Package] = ()) -> None:
        self._packages = packages
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def launch(self, limits: Limits, ends: Ends) -> _ForkedChild:
        """Start a process for one program; raise `SandboxError` if that fails."""
        with self._lock:
            if self._server is None or not self._server.usable():
                self._close_server()
                self._server = _Server(self._packages)
            server = self._server
        return server.start(limits, ends)

    def close(self) -> None:
        """End the server and its programs; the next `launch` starts a new server."""
        with self._lock:
            self._close_server()

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None


class _Server:
    def __init__(self, packages: Sequence[Package]) -> None:
        scratch.sweep()
        self._owner = os.getpid()
        self._numbers = itertools.count()
        self._root = scratch.make()
        with contextlib.ExitStack() as failed:
            failed.callback(self._root.remove)
            _populate(self._root.path, packages)
            try:
                self._process, self._control = _start(self._root.path)
            except OSError as error:
                raise SandboxError(f"no process for {sys.executable!r}: {error}") from error
            failed.pop_all()
            self.close = weakref.finalize(self, _end, self._process, self._control, self._root, self._owner)
            failed.callback(self.close)
            self._begin(packages)
            failed.pop_all()

    def _begin(self, packages: Sequence[Package]) -> None:
        """Send the server its setup, and wait until the server is confined."""
        links = os.path.join(self._root.path, PACKAGES)
        paths = [package.path for package in packages]
        setup = {"root": self._root.path, "links": links, "packages": paths, "path": [links] if packages else []}
        try:
            self._control.settimeout(START_S)
            self._control.send(marshal.dumps(setup))
            missing = marshal.loads(self._control.recv(LARGEST_MESSAGE))
        except (EOFError, OSError) as error:
            raise SandboxError(f"the sandbox's server did not start: {self._exit_report()}") from error
        if missing:
            raise MissingLayersError(missing)

    def _exit_report(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        with open(os.path.join(self._root.path, "stderr"), encoding="utf-8", errors="replace") as file:
            return f"exit status {self._process.returncode}; {file.read()[-500:]}"

    def usable(self) -> bool:
        # A forked process must not end its parent's server, so it starts another server.
        return self._owner == os.getpid() and self._process.poll() is None

    def start(self, limits: Limits, ends: Ends) -> _ForkedChild:
        folder = os.path.join(self._root.path, str(next(self._numbers)))
        try:
            os.mkdir(folder, 0o700)
        except OSError as error:
            raise SandboxError(f"no scratch folder in {self._root.path!r}: {error}") from error
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = _ForkedChild(ours, folder)
        setup = marshal.dumps({"limits": limits.by_name(), "folder": folder})
        with theirs:
            try:
                socket.send_fds(self._control, [setup], [*ends, theirs.fileno()])
            except OSError as error:
                child.close()
                raise SandboxError(f"the sandbox's server is gone: {error}") from error
        return child


def _populate(root: str, packages: Sequence[Package]) -> None:
    try:
        links = os.path.join(root, PACKAGES)
        os.mkdir(links)
        for package in packages:
            os.symlink(package.path, os.path.join(links, package.name))
        with open(os.path.join(root, CANARY), "wb") as file:
            file.write(b"canary")
    except OSError as error:
        raise SandboxError(f"no scratch folder in {tempfile.gettempdir()!r}: {error}") from error


def _start(root: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with contextlib.ExitStack() as failed, theirs, open(os.path.join(root, "stderr"), "wb") as complaints:
        failed.callback(ours.close)
        process = subprocess.Popen(
            command("server", theirs.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            pass_fds=(theirs.fileno(),),
            cwd=root,
            env=environment(root),
            start_new_session=True,
        )
        failed.pop_all()
    return process, ours


def _end(process: subprocess.Popen[bytes], control: socket.socket, root: scratch.Scratch, owner: int) -> None:
    """End a server and its programs; in a fork of the server's owner, only close the socket."""
    control.close()
    if os.getpid() != owner:
        # The server is not a child of this process, so waiting for it would fail.
        process.returncode = 0
        return
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    root.remove()


class _ForkedChild:
    """A program, controlled through its status socket; the server ends the program when the socket closes."""

    preamble = b""
    denies = True

    def __init__(self, status: socket.socket, folder: str) -> None:
        self._status = status
        self._folder = folder
        self._pid: int | None = None
        self.returncode: int | None = None

    def processes(self) -> list[int]:
        return [] if self._pid is None or self.returncode is not None else [self._pid]

    def poll(self) -> int | None:
        return self.wait(0.0)

    def wait(self, timeout_s: float) -> int | None:
        while self.returncode is None and _readable(self._status, timeout_s):
            self._read()
        if self.returncode in (LOST, wire.NOT_STARTED):
            raise SandboxError("the sandbox's server died or could not fork")
        return self.returncode

    def _read(self) -> None:
        """Read the process id, which is the first message, or the exit status, which is one byte."""
        try:
            message = self._status.recv(wire.PID_SIZE)
        except OSError:
            message = b""
        if len(message) == wire.PID_SIZE:
            self._pid = int.from_bytes(message, sys.byteorder)
        else:
            self.returncode = next(iter(message), LOST)

    def stop(self) -> None:
        # Do not send a message: an unread message would turn the server's answer into an error.
        with contextlib.suppress(OSError):
            self._status.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._status.close()
        scratch.remove(self._folder)


def _readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
