"""Assemble a stream's events into an unstreamed reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.adapters.openai.response import READ, joined, thought_in
from pytest_lmeval.extra import Fields, accumulate, of_call, unknown

_GLUED = "the stream joins several calls in one call of {}, which cannot be split: use stream=false"
_TEXTS = ("refusal", "reasoning_content", "reasoning", "thinking")
_READ = READ.union(_TEXTS)


@dataclass(slots=True)
class _Call:
    """A tool call that arrives in pieces; if a piece after the complete call has only a name, ``again`` stores it."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    again: Mapping[str, object] | None = None
    more: Fields = field(default_factory=dict)

    def ends_before(self, piece: Mapping[str, object]) -> bool:
        """Return True if a piece belongs to another call: it has another id, or this call is complete.

        Ids and indexes do not suffice, because some servers send no ids, and no index or the same index for all calls.
        """
        own, name, arguments = _parts(piece)
        if own and self.id and own != self.id:
            return True
        if not (name or self.again) or _after_object(self.arguments) is None:
            return False
        if arguments.strip() or name not in (self.name, "") or (own and not self.id):
            return True
        # The piece either starts another call, or repeats the name, as some servers do with every piece.
        self.again = self.again or piece
        return False

    def add(self, piece: Mapping[str, object]) -> None:
        own, name, arguments = _parts(piece)
        self.id = self.id or own
        if name != self.name:  # some servers repeat the name with every piece
            self.name += name
        self.arguments.append(arguments)
        accumulate(self.more, of_call(piece))

    def document(self) -> dict[str, object]:
        function: dict[str, object] = {"name": self.name or None, "arguments": "".join(self.arguments)}
        within: Any = self.more.get("function", {})
        return {"id": self.id, "type": "function", **self.more, "function": {**function, **within}}


def _parts(piece: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the id, the name and the arguments in a piece of a tool call."""
    function = piece.get("function") or {}
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    return str(piece.get("id") or ""), function.get("name") or "", text


def _after_object(arguments: list[str]) -> str | None:
    """Return the text after the JSON object at the start of ``arguments``, or None if there is no complete object."""
    text = "".join(arguments).lstrip()
    try:
        end = json.JSONDecoder().raw_decode(text)[1] if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return None if end is None else text[end:].lstrip()


@dataclass(slots=True)
class StreamedChoice:
    """The part of the first choice that has arrived; ``beside`` holds the reply's fields outside the choice."""

    beside: dict[str, object] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: list[_Call] = field(default_factory=list)
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    more: Fields = field(default_factory=dict)
    reason: Any = None
    error: Any = None
    has_choice: bool = False
    has_content: bool = False

    @property
    def has_ended(self) -> bool:
        """True once the finish reason or an error has arrived."""
        return self.reason is not None or bool(self.error)

    def add(self, event: Mapping[str, object]) -> None:
        """Add an event; raise ValueError or TypeError if the event is not part of an answer."""
        self.beside |= {
            name: event[name] for name in ("model", "system_fingerprint", "usage") if event.get(name) is not None
        }
        choices = event.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise ValueError
        for choice in choices:
            if choice.get("index") in (0, None):
                self._add_choice(choice)

    def document(self) -> dict[str, object]:
        """Return the unstreamed reply that is equivalent to the events so far."""
        texts = {name: "".join(pieces) for name, pieces in self.texts.items()}
        choice: dict[str, object] = {"finish_reason": self.reason, "logprobs": self.logprobs or None}
        if "text" in texts:
            choice["text"] = texts.pop("text")
        if error := self.error or self._glued():
            choice["error"] = error
        calls = [call.document() for call in sorted(self.calls, key=lambda call: call.index)]
        choice["message"] = {**self.more, **texts, "tool_calls": calls}
        return {**self.beside, "choices": [choice] if self.has_choice else []}

    def _glued(self) -> dict[str, str] | None:
        for call in self.calls:
            if (_after_object(call.arguments) or "").startswith("{"):
                return {"type": "invalid stream", "message": _GLUED.format(call.name)}
        return None

    def _add_choice(self, choice: Mapping[str, object]) -> None:
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
        accumulate(self.more, unknown(delta, _READ))
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
        """Add a piece to the tool call with its index, or to the last call if it has no index, or begin a call."""
        if not isinstance(piece, dict) or not isinstance(piece.get("function") or {}, dict):
            raise TypeError
        index = piece.get("index")
        if isinstance(index, int):
            call = next((call for call in reversed(self.calls) if call.index == index), None)
        else:
            index, call = len(self.calls), self.calls[-1] if self.calls else None
        if call is None or call.ends_before(piece):
            begun = None if call is None or _parts(piece)[1] else call.again
            call = _Call(index)
            self.calls.append(call)
            if begun is not None:
                call.add(begun)
        call.add(piece)
        self.has_content = True
