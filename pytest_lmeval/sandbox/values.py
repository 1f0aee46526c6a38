"""Parse, compare and show the tagged values that a child sends.

A ``bool`` can only equal a ``bool``, but an ``int`` can equal a ``float``. A tuple can equal a list. NaN equals no
value. The order of a set, and of a dict's keys, does not matter. A program could choose values whose hashes collide, so
this module compares canonical text instead of hashed values.
"""

from __future__ import annotations

import json
import operator
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pytest_lmeval.sandbox.inside.wire import MAX_DEPTH, MAX_DIGITS, encode

ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# No other canonical text contains a control character.
NAN = "\0"
LONGEST_SHOWN = 80
LARGE = 1 << 63
LARGEST_FLOAT = int(sys.float_info.max)
# Estimated sizes in bytes: an object with its reference, a container with spare capacity, and a key besides the tag.
ROOM_OF_ITEM = 60
ROOM_OF_CONTAINER = 200
ROOM_OF_KEY = 300
KEY_ENDS = (b'":', b'" ', b'"\t', b'"\n', b'"\r')
CLEARLY_SMALL = 1 << 20
MOST_QUOTES = 10_000
# JSON escapes of characters that Python stores in four bytes, or in two bytes.
ASTRAL = re.compile(rb"\\u[dD][89abAB]")
WIDE = re.compile(rb"\\u(?!00)")
SPECIAL = ("inf", "-inf", "nan")


def tagged(value: Any) -> Any:
    """Return the tagged form of a trusted value; raise `inside.wire.UnfitError` if it has no such form."""
    return json.loads(encode(value))


def parse(payload: bytes) -> list[Any]:
    """Return the message in a frame from the child; raise ValueError if the message is malformed."""
    try:
        # Decode as ASCII here: the parser would also accept UTF-16, whose structure `room` cannot see.
        message = json.loads(payload.decode("ascii"), parse_int=_integer, parse_constant=_constant)
        _check(message, MAX_DEPTH + 1)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ValueError("not a message")
    return message


def room(payload: bytes) -> int:
    """Estimate the memory in bytes that the parsed message takes."""
    found = _room(payload)
    if found <= CLEARLY_SMALL:
        return found
    # Text may look like structure. In a frame with few strings, it is cheap to separate the two.
    bare = payload.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > MOST_QUOTES:
        return found
    structure = b"".join(bare.split(b'"')[::2])
    return _room(structure) + max(len(payload), _room_of_text(payload))


def _room_of_text(payload: bytes) -> int:
    """Estimate the bytes that the strings take, as if every string had the payload's widest character."""
    if rb"\u" not in payload:
        return len(payload)
    # An escaped backslash does not start another escape.
    bare = payload.replace(rb"\\", b"_")
    width = 4 if ASTRAL.search(bare) else 2 if WIDE.search(bare) else 1
    return width * (len(bare) - 5 * bare.count(rb"\u"))


def _room(payload: bytes) -> int:
    objects = payload.count(b"{")
    containers = payload.count(b"[") + objects
    # In a well-formed message, each object has exactly one key.
    keys = max(0, sum(map(payload.count, KEY_ENDS)) - objects)
    items = payload.count(b",") * ROOM_OF_ITEM + containers * ROOM_OF_CONTAINER + keys * ROOM_OF_KEY
    return max(len(payload), _room_of_text(payload)) + items


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"an integer of more than {MAX_DIGITS} digits")
    return int(text)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _check(item: Any, room: int) -> None:
    if room < 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(item, list):
        for part in item:
            _check(part, room - 1)
    elif isinstance(item, dict):
        _check_tag(item, room)
    elif isinstance(item, float) and item in (float("inf"), float("-inf")):
        raise ValueError("a number out of range")


def _check_tag(item: dict[str, Any], room: int) -> None:
    [(tag, body)] = item.items() if len(item) == 1 else [("", None)]
    if tag in ("tuple", "set") and isinstance(body, list):
        _check(body, room)
    elif tag == "dict" and isinstance(body, list):
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError("not a pair")
            _check(pair, room)
    elif tag == "bytes" and isinstance(body, str):
        bytes.fromhex(body)
    elif not (tag == "float" and body in SPECIAL):
        raise ValueError(f"not a tagged value: {tag!r}")


def same(left: Any, right: Any) -> bool:
    """Return True if two tagged values are equal."""
    ours, theirs = _sequence(left), _sequence(right)
    # The canonical text of a large value takes much more memory than the value, so compare parts first.
    if ours is not None and theirs is not None:
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if ours is not None or theirs is not None or _shape(left) != _shape(right):
        return False
    text = _canonical(left)
    return NAN not in text and text == _canonical(right)


def within(expected: Any, value: Any, tolerance: float | None) -> bool:
    """Return True if two tagged values are equal, except that floats may differ by the tolerance.

    Numbers in sets and in keys must be equal.
    """
    if tolerance is None:
        return same(expected, value)
    wanted, given = _sequence(expected), _sequence(value)
    if wanted is not None and given is not None:
        return len(wanted) == len(given) and all(within(*pair, tolerance) for pair in zip(wanted, given, strict=True))
    keys, others = _by_key(expected), _by_key(value)
    if keys is not None and others is not None:
        return keys.keys() == others.keys() and all(within(keys[key], others[key], tolerance) for key in keys)
    if type(expected) in (int, float) and type(value) in (int, float) and float in (type(expected), type(value)):
        return close(value, expected, tolerance)
    return same(expected, value)


def close(value: float, expected: float, tolerance: float) -> bool:
    """Return True if the absolute error, or the error relative to ``expected``, is at most the tolerance."""
    try:
        return abs(value - expected) <= tolerance * max(1.0, abs(expected))
    except OverflowError:
        return False


def _by_key(item: Any) -> dict[str, object] | None:
    if isinstance(item, dict) and "dict" in item:
        return {_canonical(key): value for key, value in item["dict"]}
    return None


def _sequence(item: Any) -> list[Any] | None:
    if isinstance(item, dict) and "tuple" in item:
        item = item["tuple"]
    return item if isinstance(item, list) else None


def _shape(item: Any) -> tuple[object, int]:
    """Return a value's kind and number of parts, which are the same for equal values."""
    if isinstance(item, dict):
        [(tag, body)] = item.items()
        return tag, len(body)
    return (float if type(item) is int else type(item)), 0


def _canonical(item: Any) -> str:
    if item is None or isinstance(item, (bool, str)):
        return json.dumps(item)
    if isinstance(item, (int, float)):
        # Compare whole numbers as int, because 2**53 + 1 and 2.0**53 must differ. Keep the text of a large float short.
        whole = int(item)
        if abs(whole) < LARGE:
            return repr(whole) if item == whole else repr(item)
        return repr(float(item)) if abs(whole) <= LARGEST_FLOAT and float(item) == whole else repr(item)
    if isinstance(item, list):
        return f"[{','.join(map(_canonical, item))}]"
    [(tag, body)] = item.items()
    return CANONICAL[tag](body)


CANONICAL: Mapping[str, Callable[[Any], str]] = {
    "bytes": lambda body: f"b{body}",
    "dict": lambda pairs: f"{{{','.join(sorted(':'.join(map(_canonical, pair)) for pair in pairs))}}}",
    "float": lambda body: NAN if body == "nan" else body,
    # Only `show` creates values with this tag.
    "int": lambda body: body,
    "set": lambda body: f"<{','.join(sorted(map(_canonical, body)))}>",
    "tuple": lambda body: _canonical(body),
}


def contains(container: Any, item: Any) -> bool:
    """Return ``item in container`` for two tagged values, or False if Python would raise an exception."""
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if isinstance(container, dict):
        [(tag, body)] = container.items()
        container = [key for key, _ in body] if tag == "dict" else body
    return isinstance(container, list) and any(same(item, part) for part in container)


def ordered(symbol: str, left: Any, right: Any) -> bool:
    """Return ``left symbol right`` for two tagged values and a key of `ORDER`, or False if they have no order."""
    try:
        return bool(ORDER[symbol](_orderable(left), _orderable(right)))
    except TypeError:
        return False


def _orderable(item: Any) -> Any:
    if isinstance(item, dict) and "float" in item:
        return float(item["float"])
    if (parts := _sequence(item)) is not None:
        return [_orderable(part) for part in parts]
    if item is None or isinstance(item, (bool, dict)):
        raise TypeError(f"{item!r} has no order here")
    return item


def near(symbol: str, item: Any, centre: float | int, literal: Any) -> bool:
    """Return ``abs(item - centre) symbol literal`` if ``item`` is a tagged number, or False for any other value."""
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        return False
    try:
        return bool(ORDER[symbol](abs(item - centre), literal))
    except (OverflowError, TypeError):
        return False


def show(item: Any) -> str:
    """Represent a tagged value as short text, for use in a message."""
    text = _canonical(_start(item)).replace(NAN, "nan")
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _start(item: Any) -> Any:
    """Return the beginning of a tagged value that is long enough for `show`."""
    if isinstance(item, dict):
        return {tag: body if isinstance(body, str) else _start(body) for tag, body in item.items()}
    if isinstance(item, list):
        return [_start(part) for part in item[:LONGEST_SHOWN]]
    if type(item) is int:
        return {"int": repr(item)}
    return item[: LONGEST_SHOWN + 1] if isinstance(item, str) else item


def truth(item: Any) -> bool:
    """Return True if the value that ``item`` represents is truthy in Python."""
    if isinstance(item, dict):
        [(tag, body)] = item.items()
        return tag == "float" or bool(body)
    return bool(item)
