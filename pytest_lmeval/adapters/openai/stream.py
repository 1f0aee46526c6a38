"""From server-sent events to the document that the server would have sent in one piece.

It is put together here and judged where every reply is, in :mod:`.response`: an event that is no part of an
answer, such as an error, replaces the whole reply.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.adapters.openai.response import joined, once_each, thought_in

_FIELDS = frozenset({b"", b"data", b"event", b"id", b"retry", b"error"})  # b"" is a comment
_DONE = b"[DONE]"
_TEXTS = ("refusal", "reasoning_content", "reasoning", "thinking")


class EventStream:
    """Reads a body as it arrives; ``first`` is when, by ``clock``, the first text, thought or call came."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.first: float | None = None
        self.fault = b""
        self._clock = clock
        self._answer = _Answer()
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._is_error = False
        self._is_stream = False
        self._done = False

    def feed(self, chunk: bytes) -> None:
        """Read on; once an event is a ``fault``, nothing after it counts."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._take_line(b"".join([*self._line, end]))
            self._line.clear()
        self._line.append(rest)

    def end(self) -> bool:
        """Read what comes last without an empty line; return False where the answer breaks off."""
        if any(self._line):
            self._take_line(b"".join(self._line))
            self._line.clear()
        # An event that is itself cut off is no fault of its own.
        if _is_whole(b"\n".join(self._data)):
            self._dispatch()
        answer = self._answer
        ended = self._done or answer.reason is not None or bool(answer.error) or bool(self.fault)
        return ended or not self._is_stream

    def document(self) -> bytes | None:
        """Return the reply as JSON, or the fault; None where what came are no events."""
        if not self._is_stream:
            return None
        try:
            return self.fault or json.dumps(self._answer.document()).encode("ascii")
        except RecursionError:
            return b"events that are nested too deep"

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
        if name in (b"data", b"error"):  # some servers name the field itself so
            self._data.append(value)
        if name == b"error" or (name, value) == (b"event", b"error"):
            self._is_error = True

    def _dispatch(self) -> None:
        data, is_error = b"\n".join(self._data), self._is_error
        self._data, self._is_error = [], False
        if self.fault or self._done or not data:  # what comes after the end is no part of the answer
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
        if is_error or (isinstance(event, dict) and event.get("object") == "error"):
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


@dataclass(slots=True)
class _Call:
    """A call of a tool, of which pieces come."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments")
        self.id = self.id or str(piece.get("id") or "")
        if name != self.name:  # some servers repeat it with every piece
            self.name += name
        if arguments is not None:
            self.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def document(self) -> dict[str, Any]:
        function = {"name": self.name or None, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(slots=True)
class _Answer:
    """The first choice, as far as it came, and the fields beside it."""

    beside: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    reason: Any = None
    error: Any = None
    has_choice: bool = False
    has_content: bool = False

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event; raise ValueError or TypeError where it is none of an answer."""
        self.beside |= {
            name: event[name] for name in ("model", "system_fingerprint", "usage") if event.get(name) is not None
        }
        choices = event.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise ValueError
        for choice in choices:
            if choice.get("index") in (0, None):
                self._add_choice(choice)

    def document(self) -> dict[str, Any]:
        """Return what came, in the form of a reply in one piece."""
        texts = {name: "".join(pieces) for name, pieces in self.texts.items()}
        choice: dict[str, Any] = {"finish_reason": self.reason, "logprobs": self.logprobs or None}
        if "text" in texts:
            choice["text"] = texts.pop("text")
        if self.error:
            choice["error"] = self.error
        calls = [call.document() for call in sorted(self.calls, key=lambda call: call.index)]
        choice["message"] = {**texts, "tool_calls": calls}
        return {**self.beside, "choices": [choice] if self.has_choice else []}

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        self.has_choice = True
        self.error = self.error or choice.get("error")
        delta = choice.get("delta") or {}
        if not isinstance(delta, dict):
            raise ValueError
        self._add_text("text", choice.get("text"))
        self._add_content(delta.get("content"))
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                self._add_text(name, delta[name])
        for piece in delta.get("tool_calls") or []:
            self._add_call(piece)
        self._add_logprobs(choice.get("logprobs"))
        if choice.get("finish_reason") is not None:
            self.reason = choice["finish_reason"]

    def _add_logprobs(self, given: Any) -> None:
        for name, values in given.items() if isinstance(given, dict) else ():
            if isinstance(values, list):
                self.logprobs.setdefault(name, []).extend(values)

    def _add_content(self, content: Any) -> None:
        if not isinstance(content, list):
            self._add_text("content", content)
            return
        thoughts = [thought for part in content if isinstance(thought := thought_in(part), str)]
        text = joined(content)
        if content and text is None and not thoughts:
            raise ValueError
        self._add_text("thinking", "".join(thoughts) or None)
        self._add_text("content", text)

    def _add_text(self, name: str, piece: Any) -> None:
        if piece is None:
            return
        if not isinstance(piece, str):
            raise TypeError
        self.texts.setdefault(name, []).append(piece)
        self.has_content = self.has_content or bool(piece)

    def _add_call(self, piece: Any) -> None:
        """Add to the call of the same index, unless the piece bears the id of another one."""
        if not isinstance(piece, dict) or not isinstance(piece.get("function") or {}, dict):
            raise TypeError
        index, own = piece.get("index"), str(piece.get("id") or "")
        if isinstance(index, int):
            call = next((call for call in reversed(self.calls) if call.index == index), None)
        else:
            index, call = len(self.calls), self.calls[-1] if self.calls else None
        if call is None or (own and call.id and own != call.id):
            call = _Call(index)
            self.calls.append(call)
        call.add(piece)
        self.has_content = True
