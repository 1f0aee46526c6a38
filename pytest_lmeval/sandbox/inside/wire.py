"""Encode the values and exit statuses that the parent and a program's process exchange.

``None``, ``bool``, ``int``, ``float``, ``str`` and ``list`` become plain JSON. Other values become an object whose only
key is a tag: ``{"tuple": [...]}``, ``{"set": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"bytes": "6869"}``,
``{"float": "nan" | "inf" | "-inf"}``. Any other type raises `UnfitError`.

A frame is a payload preceded by its length. Frames to the parent contain ASCII JSON. Frames to the child contain
``marshal`` data: the sender is trusted, and importing ``json`` takes as long as starting the interpreter.
"""

from __future__ import annotations

import marshal
from os import read, waitstatus_to_exitcode, write

try:
    from _json import encode_basestring_ascii as quote
except ImportError:  # pragma: no cover - an interpreter without the C accelerator
    from json.encoder import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

MAX_FRAME = 4 * 1024 * 1024
MAX_DEPTH = 100
MAX_DIGITS = 4214
PREFIX = 4
TOO_LARGE = 10**MAX_DIGITS

# Exit statuses; values below 128 are the program's own statuses.
SIGNALLED = 128  # plus the signal's number
STOPPED = 200
OVER_CPU = 201
OVER_PROCESSES = 202
OVER_DISK = 203
OVER_THREADS = 204
NOT_STARTED = 205
# The size in bytes of the process id, which the server sends first.
PID_SIZE = 4


class UnfitError(ValueError):
    """A value that cannot be sent between the processes; the message gives the reason."""


def exit_code(status: int) -> int:
    """Return the program's exit status, at most 127, or 128 plus the number of the signal that ended the program."""
    code = waitstatus_to_exitcode(status)
    return SIGNALLED - code if code < 0 else min(code, SIGNALLED - 1)


def encode(value: Any, room: int = MAX_DEPTH) -> str:
    """Return ``value`` as JSON text with tags; ``room`` is the number of further levels that may be nested.

    Read subclasses of built-in types with the built-in methods, so that overridden methods have no effect.
    """
    if room < 0:
        raise UnfitError(f"nested deeper than {MAX_DEPTH} levels")
    if value is None or value is True or value is False:
        return "null" if value is None else "true" if value else "false"
    own = type(value)
    encoder = ENCODERS.get(own) or next((made for kind, made in ENCODERS.items() if issubclass(own, kind)), None)
    if encoder is None:
        raise UnfitError(f"a value of type {type.__dict__['__name__'].__get__(own)} is not plain data")
    return encoder(value, room - 1)


def _integer(value: Any, _room: int) -> str:
    number = int.__add__(value, 0)
    if not -TOO_LARGE < number < TOO_LARGE:
        raise UnfitError(f"an integer of more than {MAX_DIGITS} digits")
    return int.__repr__(number)


def _float(value: Any, _room: int) -> str:
    text = float.__repr__(float.__pos__(value))
    return text if text[-1].isdigit() else f'{{"float":"{text}"}}'


def _items(items: Iterable[Any], room: int) -> str:
    return "[" + ",".join([encode(item, room) for item in items]) + "]"


def _pairs(value: Any, room: int) -> str:
    pairs = [f"[{encode(key, room)},{encode(item, room)}]" for key, item in dict.items(value)]
    return '{"dict":[' + ",".join(pairs) + "]}"


ENCODERS: Mapping[type, Callable[[Any, int], str]] = {
    int: _integer,
    float: _float,
    str: lambda value, _: quote(str.__str__(value)),
    list: lambda value, room: _items(list.__iter__(value), room),
    tuple: lambda value, room: '{"tuple":' + _items(tuple.__iter__(value), room) + "}",
    dict: _pairs,
    set: lambda value, room: '{"set":' + _items(set.__iter__(value), room) + "}",
    frozenset: lambda value, room: '{"set":' + _items(frozenset.__iter__(value), room) + "}",
    bytes: lambda value, _: f'{{"bytes":"{bytes.hex(value)}"}}',
}

UNPACKERS: Mapping[str, Callable[[Any, bool], Any]] = {
    "bytes": lambda text, _: bytes.fromhex(text),
    "dict": lambda pairs, _: {unpack(key, hashable=True): unpack(value) for key, value in pairs},
    "float": lambda text, _: float(text),
    "set": lambda items, hashable: (frozenset if hashable else set)([unpack(item, hashable=True) for item in items]),
    "tuple": lambda items, hashable: tuple([unpack(item, hashable) for item in items]),
}


def unpack(item: Any, hashable: bool = False) -> Any:
    """Return the value that a tagged item represents; with ``hashable``, sets become frozensets."""
    if type(item) is list:
        return [unpack(part) for part in item]
    if type(item) is dict:
        [(tag, body)] = item.items()
        return UNPACKERS[tag](body, hashable)
    return item


def frame(payload: bytes) -> bytes:
    """Return ``payload`` preceded by its length."""
    return len(payload).to_bytes(PREFIX, "big") + payload


def receive(fd: int) -> Any:
    """Return the trusted parent's next message; raise EOFError at the end of the pipe."""
    return marshal.loads(_exactly(fd, int.from_bytes(_exactly(fd, PREFIX), "big")))


def reply(fd: int, kind: str, *parts: Any) -> None:
    """Send one message to the parent; raise `UnfitError` if a part is not plain data, or if the message is too long."""
    payload = ("[" + ",".join([encode(part) for part in (kind, *parts)]) + "]").encode("ascii")
    if len(payload) > MAX_FRAME:
        raise UnfitError(f"more than {MAX_FRAME} bytes as JSON")
    data = memoryview(frame(payload))
    while data:
        data = data[write(fd, data) :]


def _exactly(fd: int, size: int) -> bytes:
    parts = []
    while size:
        part = read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
