"""What examples that run side by side print and log, each kept with its example."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Sequence
from typing import Any

from pytest_lmeval.functions.example import CURRENT, ExampleState

_MOST = 1 << 20


def current_beside() -> ExampleState | None:
    """Return the example that the calling code belongs to if it runs beside others; else None."""
    state = CURRENT.get()
    return state if state is not None and state.is_beside else None


def route_prints() -> None:
    """Send what examples print from here on to the example; pytest may have put streams of its own there since."""
    # Many times per example, and as a rule nothing is to do.
    if type(sys.stdout) is not _Routed:
        sys.stdout = _Routed(sys.stdout, "stdout")
    if type(sys.stderr) is not _Routed:
        sys.stderr = _Routed(sys.stderr, "stderr")


def routed(stream: Any, name: str) -> Any:
    """Return a stream that hands on what is no example's own; ``name`` is ``stdout`` or ``stderr``."""
    return stream if isinstance(stream, _Routed) else _Routed(stream, name)


def unroute_prints() -> None:
    """Give the streams their places back."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, _Routed):
            setattr(sys, name, stream.stream)


class LogKeeper(logging.Handler):
    """Keeps the log records of an example that runs beside others."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        state = current_beside()
        if state is not None:
            _keep(state, "log", f"{self.format(record)}\n")


def is_of_this_thread(record: logging.LogRecord) -> bool:
    """Tell whether a record is of the test whose turn it is: a filter for the handlers of others."""
    return current_beside() is None


def sections(output: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what was written as one text for each stream."""
    texts: dict[str, list[str]] = {}
    for name, text in output:
        texts.setdefault(name, []).append(text)
    return [(name, "".join(parts)) for name, parts in texts.items()]


def _keep(state: ExampleState, name: str, text: str) -> None:
    state.printed.append((name, text[:_MOST]))


class _Routed(io.TextIOBase):
    """A stream that takes what examples write for themselves, and hands everything else on."""

    def __init__(self, stream: Any, name: str) -> None:
        self.stream = stream
        self._name = name

    def write(self, text: str) -> int:
        state = current_beside()
        if state is None:
            written: int = self.stream.write(text)
            return written
        _keep(state, self._name, text)
        return len(text)

    def flush(self) -> None:
        if current_beside() is None:
            self.stream.flush()

    def isatty(self) -> bool:
        return bool(self.stream.isatty())

    def fileno(self) -> int:
        number: int = self.stream.fileno()
        return number

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute of the base class, a look at the stream here
        return str(self.stream.encoding)

    @property
    def buffer(self) -> Any:
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
