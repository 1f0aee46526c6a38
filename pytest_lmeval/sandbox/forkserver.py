"""Programs forked from one interpreter that was started for this purpose, confined, by the kernel, each on its own."""

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
from dataclasses import asdict

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
# A file that no program may reach, for the probes.
CANARY = "canary"
LOST = -1


class MissingLayersError(SandboxError):
    """The kernel does not let the server confine itself; ``layers`` are names and reasons."""

    def __init__(self, layers: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"layer {name}: {why}" for name, why in layers))
        self.layers = tuple(layers)


class ForkLauncher:
    """Keeps one server, from the first program on, and starts another when it has died."""

    def __init__(self, packages: Sequence[Package] = ()) -> None:
        self._packages = packages
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def launch(self, limits: Limits, ends: Ends) -> _ForkedChild:
        """Start a process for one program; raise `SandboxError` if there can be none."""
        return self._living().start(limits, ends)

    def _living(self) -> _Server:
        with self._lock:
            # A process that was forked from the one with the server may not end it, so it has its own.
            if self._server is None or not self._server.usable():
                self._give_up()
                self._server = _Server(self._packages)
            return self._server

    def close(self) -> None:
        """End the server and what is left of its programs; another `launch` starts a new one."""
        with self._lock:
            self._give_up()

    def _give_up(self) -> None:
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
            _furnish(self._root.path, packages)
            try:
                self._process, self._control = _start(self._root.path)
            except OSError as error:
                raise SandboxError(f"no process for {sys.executable!r}: {error}") from error
            self.close = weakref.finalize(self, _end, self._process, self._control, self._root, self._owner)
            failed.pop_all()
        try:
            self._begin(packages)
        except SandboxError:
            self.close()
            raise

    def _begin(self, packages: Sequence[Package]) -> None:
        """Hand over what the server has to know, and wait until it is confined."""
        links = os.path.join(self._root.path, PACKAGES)
        paths = [package.path for package in packages]
        setup = {"root": self._root.path, "links": links, "packages": paths, "path": [links] if packages else []}
        try:
            self._control.settimeout(START_S)
            self._control.send(marshal.dumps(setup))
            answer = self._control.recv(LARGEST_MESSAGE)
        except OSError as error:
            raise SandboxError(f"the sandbox's server did not start: {self._complaint()}") from error
        if not answer:
            raise SandboxError(f"the sandbox's server did not start: {self._complaint()}")
        missing = marshal.loads(answer)
        if missing:
            raise MissingLayersError(missing)

    def _complaint(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        with open(os.path.join(self._root.path, "stderr"), encoding="utf-8", errors="replace") as file:
            return f"exit status {self._process.returncode}; {file.read()[-500:]}"

    def usable(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    def start(self, limits: Limits, ends: Ends) -> _ForkedChild:
        folder = os.path.join(self._root.path, str(next(self._numbers)))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        setup = marshal.dumps({"limits": asdict(limits), "folder": folder})
        try:
            os.mkdir(folder, 0o700)
        except OSError as error:
            ours.close()
            theirs.close()
            raise SandboxError(f"no scratch folder in {self._root.path!r}: {error}") from error
        handed = [ends.request, ends.result, ends.stdout, ends.stderr, theirs.fileno()]
        child = _ForkedChild(ours, folder)
        try:
            socket.send_fds(self._control, [setup], handed)
        except OSError as error:
            child.close()
            raise SandboxError(f"the sandbox's server is gone: {error}") from error
        finally:
            theirs.close()
        return child


def _furnish(root: str, packages: Sequence[Package]) -> None:
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
    """End a server, whose programs end with it; in a process forked from its owner, leave it alone."""
    control.close()
    if os.getpid() != owner:
        # Not this process's child: it can't be waited for, and need not be.
        process.returncode = 0
        return
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    root.remove()


class _ForkedChild:
    """A program as its status socket reports it; the server ends the program when the socket is closed."""

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
        """Take the number of the process, which comes first, or how it ended, which is one byte."""
        try:
            message = self._status.recv(wire.PID_SIZE)
        except OSError:
            message = b""
        if len(message) == wire.PID_SIZE:
            self._pid = int.from_bytes(message, sys.byteorder)
        else:
            self.returncode = next(iter(message), LOST)

    def stop(self) -> None:
        # Not by a message: left unread, it would make the server's answer an error.
        with contextlib.suppress(OSError):
            self._status.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._status.close()
        scratch.remove(self._folder)


def _readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
