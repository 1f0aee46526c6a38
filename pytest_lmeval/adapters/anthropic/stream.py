"""Assemble a stream's events into an unstreamed message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Maps the kind of a delta to its field, and to the field of the block that it extends.
_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


class StreamedMessage:
    """A message, some blocks of which have arrived."""

    def __init__(self) -> None:
        self.has_content = False
        self.has_ended = False
        self._message: dict[str, object] = {}
        self._usage: dict[str, object] = {}
        self._blocks: dict[int, dict[str, object]] = {}
        self._pieces: dict[int, dict[str, list[str]]] = {}

    def add(self, event: Mapping[str, object]) -> None:
        """Add an event; raise ValueError or TypeError if the event is malformed or out of order."""
        kind = event.get("type")
        if kind == "message_start":
            self._start(_table(event, "message"))
        elif kind == "content_block_start":
            self._start_block(event.get("index"), _table(event, "content_block"))
        elif kind == "content_block_delta":
            self._add_piece(event.get("index"), _table(event, "delta"))
        elif kind == "message_delta":
            self._message |= _table(event, "delta")
            self._add_usage(event.get("usage"))
        elif kind == "message_stop":
            self.has_ended = True
        # Ignore other kinds, such as ping: the interface may add more kinds.

    def document(self) -> dict[str, object]:
        """Return the unstreamed reply that is equivalent to the events so far; a tool call's input is text."""
        blocks = [self._whole(index) for index in self._blocks]
        return {**self._message, "content": blocks, "usage": self._usage}

    def _start(self, message: Mapping[str, object]) -> None:
        if self._message:
            raise ValueError
        self._message = dict(message)
        self._add_usage(message.get("usage"))

    def _start_block(self, index: Any, block: Mapping[str, object]) -> None:
        if not self._message or not isinstance(index, int) or index in self._blocks:
            raise ValueError
        self._blocks[index], self._pieces[index] = dict(block), {}
        for name in ("text", "thinking"):
            self._add_text(index, name, block.get(name) or "")
        self.has_content = self.has_content or block.get("type") == "tool_use"

    def _add_piece(self, index: Any, delta: Mapping[str, object]) -> None:
        name, place = _PIECES.get(str(delta.get("type")), ("", ""))
        if index not in self._blocks:
            raise ValueError
        if name:
            self._add_text(index, place, delta.get(name))

    def _add_text(self, index: int, name: str, text: Any) -> None:
        if not isinstance(text, str):
            raise TypeError
        self._pieces[index].setdefault(name, []).append(text)
        self.has_content = self.has_content or bool(text)

    def _add_usage(self, usage: Any) -> None:
        """Record the token counts in ``usage``; later counts replace earlier ones."""
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _whole(self, index: int) -> dict[str, object]:
        # If no deltas arrive, for example for arguments, the block's start has the content.
        texts = {name: "".join(parts) for name, parts in self._pieces[index].items() if any(parts)}
        return {**self._blocks[index], **texts}


def _table(event: Mapping[str, object], name: str) -> dict[str, object]:
    found = event.get(name)
    if not isinstance(found, dict):
        raise TypeError
    return found
