"""Values from the child, in their tagged form, and how the parent compares them.

``bool`` equals only ``bool``; ``int`` equals ``float`` by value; a tuple equals a list; NaN equals nothing; sets and
the keys of dicts have no order. No value of a program is ever hashed here, since a program could choose values whose
hashes collide; a canonical text is compared instead.
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
# No canonical text of anything else has a control character in it.
NAN = "\0"
LONGEST_SHOWN = 80
LARGE = 1 << 63
LARGEST_FLOAT = int(sys.float_info.max)
# An object of Python's and the place that refers to it; an empty container and what it grows to.
ROOM_OF_ITEM = 60
ROOM_OF_CONTAINER = 200
# Of an object that has more keys than its tag: the key, its entry, and those in the parser's own table.
ROOM_OF_KEY = 300
KEY_ENDS = (b'":', b'" ', b'"\t', b'"\n', b'"\r')
CLEARLY_SMALL = 1 << 20
MOST_QUOTES = 10_000
# Half of a character beyond the first 65,536, and any beyond the first 256, as JSON escapes them.
ASTRAL = re.compile(rb"\\u[dD][89abAB]")
WIDE = re.compile(rb"\\u(?!00)")
SPECIAL = ("inf", "-inf", "nan")


def tagged(value: Any) -> Any:
    """Return the tagged form of a trusted value; raise `inside.wire.UnfitError` if it has none."""
    return json.loads(encode(value))


def parse(payload: bytes) -> list[Any]:
    """Return the message in a frame from the child; raise ValueError if it is anything but a sound one."""
    try:
        # Decoded here, because the parser would take UTF-16, too, whose structure `room` does not see.
        message = json.loads(payload.decode("ascii"), parse_int=_integer, parse_constant=_constant)
        _check(message, MAX_DEPTH + 1)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(message, list) or not message or not isinstance(message[0], str):
        raise ValueError("not a message")
    return message


def room(payload: bytes) -> int:
    """Return about how much memory the message in a frame takes once it is parsed, in bytes."""
    found = _room(payload)
    if found <= CLEARLY_SMALL:
        return found
    # What looks like structure may be text, of few and long strings: then it is worth the time to tell.
    bare = payload.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') > MOST_QUOTES:
        return found
    structure = b"".join(bare.split(b'"')[::2])
    return _room(structure) + max(len(payload), _room_of_text(payload))


def _room_of_text(payload: bytes) -> int:
    """Return how much the texts take if the widest of all characters is in each: Python makes all of a text as wide."""
    if rb"\u" not in payload:
        return len(payload)
    # A backslash that is itself escaped begins nothing.
    bare = payload.replace(rb"\\", b"_")
    width = 4 if ASTRAL.search(bare) else 2 if WIDE.search(bare) else 1
    return width * (len(bare) - 5 * bare.count(rb"\u"))


def _room(payload: bytes) -> int:
    objects = payload.count(b"{")
    containers = payload.count(b"[") + objects
    # In a sound message, each object has one key.
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
    """Whether two tagged values are equal."""
    ours, theirs = _sequence(left), _sequence(right)
    if ours is not None and theirs is not None:
        # Item by item, because the text of a long list takes much more room than the list.
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    # The text of a large value takes much more room than the value: not where it cannot be the same.
    if ours is not None or theirs is not None or _shape(left) != _shape(right):
        return False
    text = _canonical(left)
    return NAN not in text and text == _canonical(right)


def _sequence(item: Any) -> list[Any] | None:
    if isinstance(item, dict) and "tuple" in item:
        item = item["tuple"]
    return item if isinstance(item, list) else None


def _shape(item: Any) -> tuple[object, int]:
    """Return what two values that are the same have in common: their kind, and how many parts they have."""
    if isinstance(item, dict):
        [(tag, body)] = item.items()
        return tag, len(body)
    return (float if type(item) is int else type(item)), 0


def _canonical(item: Any) -> str:
    if item is None or isinstance(item, (bool, str)):
        return json.dumps(item)
    if isinstance(item, (int, float)):
        # Through int, because 2**53 + 1 and 2.0**53 would otherwise be equal; of a large float that is 309 digits long.
        whole = int(item)
        if abs(whole) < LARGE:
            return repr(whole) if item == whole else repr(item)
        return repr(float(item)) if abs(whole) <= LARGEST_FLOAT and float(item) == whole else repr(item)
    if isinstance(item, list):
        return f"[{','.join(map(_canonical, item))}]"
    [(tag, body)] = item.items()
    return CANONICAL[tag](body)


def _canonical_dict(pairs: list[Any]) -> str:
    return "{" + ",".join(sorted(f"{_canonical(key)}:{_canonical(value)}" for key, value in pairs)) + "}"


CANONICAL: Mapping[str, Callable[[Any], str]] = {
    "bytes": lambda body: f"b{body}",
    "dict": _canonical_dict,
    "float": lambda body: NAN if body == "nan" else body,
    # Of what is shown alone: all its digits.
    "int": lambda body: body,
    "set": lambda body: f"<{','.join(sorted(map(_canonical, body)))}>",
    "tuple": lambda body: _canonical(body),
}


def contains(container: Any, item: Any) -> bool:
    """Whether ``item in container``, both tagged; False where Python would raise."""
    if isinstance(container, str):
        return isinstance(item, str) and item in container
    if isinstance(container, dict):
        [(tag, body)] = container.items()
        container = [key for key, _ in body] if tag == "dict" else body
    return isinstance(container, list) and any(same(item, part) for part in container)


def ordered(symbol: str, left: Any, right: Any) -> bool:
    """Whether ``left symbol right`` for one of `ORDER` and two tagged values; False where they have no order."""
    try:
        return bool(ORDER[symbol](_orderable(left), _orderable(right)))
    except TypeError:
        return False


def _orderable(item: Any) -> Any:
    if isinstance(item, dict) and "float" in item:
        return float(item["float"])
    if isinstance(item, dict) and "tuple" in item:
        item = item["tuple"]
    if isinstance(item, list):
        return [_orderable(part) for part in item]
    if item is None or isinstance(item, (bool, dict)):
        raise TypeError(f"{item!r} has no order here")
    return item


def near(symbol: str, item: Any, centre: float | int, literal: Any) -> bool:
    """Whether ``abs(item - centre) symbol literal`` for a tagged number ``item``; False for anything else."""
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        return False
    try:
        return bool(ORDER[symbol](abs(item - centre), literal))
    except (OverflowError, TypeError):
        return False


def show(item: Any) -> str:
    """Return a tagged value as a reader would write it, more or less, and not too long."""
    text = _canonical(_start(item)).replace(NAN, "nan")
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _start(item: Any) -> Any:
    """Return as much of a tagged value as can be seen of it."""
    if isinstance(item, dict):
        return {tag: body if isinstance(body, str) else _start(body) for tag, body in item.items()}
    if isinstance(item, list):
        return [_start(part) for part in item[:LONGEST_SHOWN]]
    if type(item) is int:
        return {"int": repr(item)}
    return item[: LONGEST_SHOWN + 1] if isinstance(item, str) else item


def truth(item: Any) -> bool:
    """Whether a tagged value is true in Python's sense."""
    if isinstance(item, dict):
        [(tag, body)] = item.items()
        return tag == "float" or bool(body)
    return bool(item)
