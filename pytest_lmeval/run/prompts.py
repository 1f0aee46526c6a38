"""From what a render function gives to what a model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.errors import AdapterError
from pytest_lmeval.formats.task import Prompt
from pytest_lmeval.types import Generate, Message, Request

__all__ = ["as_prompt", "repeated"]


def as_prompt(rendered: Any) -> Prompt:
    """Return what a render function gave as text or messages; raise AdapterError for anything else."""
    if isinstance(rendered, str):
        return rendered
    if isinstance(rendered, Sequence) and rendered:
        return tuple(_message(entry) for entry in rendered)
    raise AdapterError(f"lm_render returned {type(rendered).__name__}; expected text or a sequence of messages")


def repeated(request: Request, number: int) -> Request:
    """Return ``request`` as the one for repeat ``number``; how probable a text is does not change with repeats."""
    return replace(request, repeat=number) if isinstance(request, Generate) else request


def _message(entry: Any) -> Message:
    if isinstance(entry, Message):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("role"), str) and isinstance(entry.get("content"), str):
        return Message(entry["role"], entry["content"])
    raise AdapterError(f"lm_render returned {entry!r} as a message; expected role and content, both text")
