"""Sockets on which nobody may be heard."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType

__all__ = ["Listeners"]

CHUNK = 1 << 16


class Listeners:
    """TCP, UDP, and sockets with a path or an abstract name; as a context manager they are closed at the end."""

    def __init__(self, name: str) -> None:
        self._open = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._accepting: dict[str, socket.socket] = {}
        self._receiving: list[tuple[str, socket.socket]] = []
        self._heard: dict[str, bytearray] = {}
        self.addresses: dict[str, int | str] = {}
        self._on_ip()
        # The path of a socket is short by the system's rules, that of a folder for tests may be long.
        self._on_names(Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="lm", dir="/tmp"))), name)

    def __enter__(self) -> Listeners:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def heard(self, token: str) -> list[str]:
        """Return the names of the listeners to which ``token`` was sent."""
        with self._lock:
            self._accept()
            for name, receiver in list(self._receiving):
                self._receive(name, receiver)
            return sorted(name for name, data in self._heard.items() if token.encode() in data)

    def _on_ip(self) -> None:
        tcp = self._listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        udp = self._listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self.addresses |= {"tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        with contextlib.suppress(OSError):
            tcp6 = self._listen("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0))
            self.addresses["tcp6"] = tcp6.getsockname()[1]

    def _on_names(self, folder: Path, name: str) -> None:
        for kind, sort in (("stream", socket.SOCK_STREAM), ("dgram", socket.SOCK_DGRAM)):
            path = str(folder / f"{kind}.sock")
            self._listen(f"unix_{kind}", socket.AF_UNIX, sort, path)
            self._listen(f"abstract_{kind}", socket.AF_UNIX, sort, f"\0{name}{kind}")
            self.addresses |= {f"unix_{kind}": path, f"abstract_{kind}": f"{name}{kind}"}

    def _listen(self, name: str, family: int, sort: int, address: tuple[str, int] | str) -> socket.socket:
        made = self._open.enter_context(socket.socket(family, sort))
        made.setblocking(False)
        made.bind(address)
        self._heard[name] = bytearray()
        if sort == socket.SOCK_STREAM:
            made.listen(64)
            self._accepting[name] = made
        else:
            self._receiving.append((name, made))
        return made

    def _accept(self) -> None:
        for name, listener in self._accepting.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    caller, _ = listener.accept()
                    caller.setblocking(False)
                    self._receiving.append((name, self._open.enter_context(caller)))

    def _receive(self, name: str, receiver: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                while data := receiver.recv(CHUNK):
                    self._heard[name] += data
            except ConnectionError:
                data = b""
            self._receiving.remove((name, receiver))
            receiver.close()
