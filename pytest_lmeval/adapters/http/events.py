"""Convert server-sent events into the JSON of an equivalent unstreamed reply.

Each interface has an :class:`Assembly` that joins the events. An event that is not part of an answer, such as an error,
replaces the whole reply.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pytest_lmeval.adapters.http.reply import once_each

_FIELDS = frozenset({b"", b"data", b"event", b"id", b"retry", b"error"})  # b"" is a comment
_DONE = b"[DONE]"


class Assembly(Protocol):
    """Joins events into the part of an answer that has arrived."""

    @property
    def has_content(self) -> bool:
        """True once part of the text, the thoughts or a tool call has arrived."""

    @property
    def has_ended(self) -> bool:
        """True once an event has completed the answer."""

    def add(self, event: Mapping[str, object]) -> None:
        """Add an event; raise ValueError or TypeError if the event is not part of an answer."""

    def document(self) -> dict[str, object]:
        """Return the unstreamed reply that is equivalent to the events so far."""


class EventStream:
    """Reads a body as it arrives; ``first`` is the time, from ``clock``, at which the first content arrived."""

    def __init__(self, answer: Assembly, clock: Callable[[], float] = time.perf_counter) -> None:
        self.first: float | None = None
        self.fault = b""
        self._clock = clock
        self._answer = answer
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._is_error = False
        self._is_stream = False
        self._done = False

    def feed(self, chunk: bytes) -> None:
        """Read a chunk; after an event that is a ``fault``, ignore all events."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._take_line(b"".join([*self._line, end]))
            self._line.clear()
        self._line.append(rest)

    def end(self) -> bool:
        """Read a final event without an empty line after it; return False if the answer is incomplete."""
        if any(self._line):
            self._take_line(b"".join(self._line))
            self._line.clear()
        # A truncated event is not a fault.
        if _is_whole(b"\n".join(self._data)):
            self._dispatch()
        return self._done or self._answer.has_ended or bool(self.fault) or not self._is_stream

    def document(self) -> bytes | None:
        """Return the reply or the fault as JSON; return None if the body is not an event stream."""
        if not self._is_stream:
            return None
        try:
            return self.fault or json.dumps(self._answer.document()).encode("ascii")
        except RecursionError:
            return b"events nested too deeply"

    def _take_line(self, line: bytes) -> None:
        if not self._is_stream:
            line = line.removeprefix(b"\xef\xbb\xbf")
        line = line.removesuffix(b"\r")
        if not line:
            self._dispatch()
            return
        name, _, value = line.partition(b":")
        self._is_stream = self._is_stream or name in _FIELDS
        value = value.removeprefix(b" ")
        if name in (b"data", b"error"):  # some servers use error as the field
            self._data.append(value)
        if name == b"error" or (name, value) == (b"event", b"error"):
            self._is_error = True

    def _dispatch(self) -> None:
        data, is_error = b"\n".join(self._data), self._is_error
        self._data, self._is_error = [], False
        if self.fault or self._done or not data:
            return
        if data.strip() == _DONE:
            self._done = True
            return
        try:
            self._take_event(json.loads(data, object_pairs_hook=once_each), is_error)
        except (ValueError, TypeError, RecursionError):
            self.fault = data
        if self.first is None and self._answer.has_content:
            self.first = self._clock()

    def _take_event(self, event: Any, is_error: bool) -> None:
        if is_error or (isinstance(event, dict) and "error" in (event.get("object"), event.get("type"))):
            error = event.get("error") if isinstance(event, dict) else None
            self.fault = json.dumps({"error": error or event or "no reason given"}).encode("ascii")
        elif not isinstance(event, dict) or event.get("error"):
            raise ValueError
        else:
            self._answer.add(event)


def _is_whole(data: bytes) -> bool:
    try:
        return data.strip() == _DONE or json.loads(data) is not None
    except (ValueError, RecursionError):
        return False
