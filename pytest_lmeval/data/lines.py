"""Parse a JSONL file line by line; an invalid line does not affect other lines."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NoReturn

from pytest_lmeval.errors import RecordRefused

MAX_LINE_BYTES = 1 << 20
LINE_OPTION = "ini lm_max_line_bytes"
"""The option that limits the lines of task files."""
MAX_DEPTH = 100
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}
_PYTHON_WORD = re.compile("|".join(_JSON_WORDS))
BOM = b"\xef\xbb\xbf"


def number_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    r"""Yield the number, from 1, and the bytes of each line that is neither blank nor a ``#`` comment.

    Lines end only at ``\n``. ``str.splitlines`` would also split at U+2028 and U+0085, which JSON strings may contain.
    """
    for number, line in enumerate(data.removeprefix(BOM).split(b"\n"), start=1):
        stripped = line.strip(b" \t\r")
        if stripped and not stripped.startswith(b"#"):
            yield number, stripped


def parse_line(line: bytes, max_bytes: int = MAX_LINE_BYTES, option: str = "") -> Any:
    """Parse a line as JSON; raise RecordRefused ``bad_json`` if the line is invalid or too long.

    Unlike the json module, the parser refuses NaN, Infinity, duplicate keys, lone surrogates, and more than 100 levels
    of nesting. ``option`` is the name of the option that sets ``max_bytes``, or "".
    """
    if len(line) > max_bytes:
        limit = f"at most {max_bytes:,} are read{f' ({option})' if option else ''}"
        raise _bad_json(f"line of {len(line):,} bytes; {limit}")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
        raise _bad_json(f"not UTF-8: {where}; save the file as UTF-8") from None
    # Count all brackets first, including brackets in strings, because the exact depth takes longer to compute.
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise _bad_json(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        if text.startswith("\ufeff"):
            raise _bad_json("a byte order mark in the middle of the file at column 1") from None
        line_number = f"line {error.lineno}, " if "\n" in text else ""
        where = f"{line_number}column {error.colno}"
        detail = f"{error.msg.removesuffix(' at')} at {where}{_remedy(text, error.pos)}"
        raise _bad_json(detail) from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise _bad_json(str(error)) from None
    if _SURROGATE_ESCAPE.search(line):
        _refuse_lone_surrogates(value)
    return value


def _bad_json(detail: str) -> RecordRefused:
    return RecordRefused("bad_json", "_line", detail)


def _remedy(text: str, place: int) -> str:
    """Return a hint if the error at ``place`` in a line is a common mistake in handwritten JSON."""
    before, rest = text[:place].rstrip(), text[place:].lstrip()
    if rest[:1] == "'":
        return ": JSON has double quotes"
    if _TRAILING_COMMA.match(before[-1:] + rest) or _TRAILING_COMMA.match(rest):
        return ": remove the comma before the bracket"
    if rest == ",":
        return ": remove the comma at the end of the line"
    if word := _PYTHON_WORD.match(rest):
        return f": JSON writes {_JSON_WORDS[word[0]]}"
    if text[:1] not in ("", "{", "["):
        return f": expected an object in braces on one line, got {text[:40]!r}"
    return ": the line ends here, and an object has to be on one line" if before and not rest and text[0] == "{" else ""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key in counts if counts[key] > 1)
        raise _bad_json(f"duplicate key {twice!r}")
    return record


def _no_constant(name: str) -> NoReturn:
    raise _bad_json(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _bad_json(f"{digits} is too large for a number")
    return number


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _bad_json(f"lone surrogate \\u{ord(error.object[error.start]):04x} in a string") from None


def _depth(text: str) -> int:
    outside = _STRING.sub("", text)
    return max(accumulate((char in "[{") - (char in "]}") for char in outside), default=0)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite)
