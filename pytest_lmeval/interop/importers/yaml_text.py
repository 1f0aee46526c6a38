"""Plain values as YAML that people read and edit: texts of several lines as blocks, all other texts in quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# A block has its characters as they are, tabs and control characters among them: texts with such go into quotes.
_NOT_IN_A_BLOCK = re.compile("\\A[ \n]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class Include(str):
    """The name of a file whose text is to be included."""

    __slots__ = ()


def yaml_text(document: Mapping[str, Any]) -> str:
    """Return the text of a mapping: mappings and lists of mappings in lines of their own, all other lists in one."""
    return "\n".join(_mapping(document, "")) + "\n"


def flow(value: Any) -> str:
    """Return a value in one line, which is JSON and YAML alike."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _mapping(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        yield from _entry(f"{indent}{_key(key)}:", value, indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Include):
        yield f"{head} !include {flow(str(value))}"
    elif isinstance(value, str) and "\n" in value and not _NOT_IN_A_BLOCK.search(value):
        yield from _block(head, value, indent)
    elif isinstance(value, Mapping) and value and any(map(_is_large, value.values())):
        yield head
        yield from _mapping(value, f"{indent}  ")
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        yield head
        for each in value:
            yield from _element(each, indent)
    else:
        yield f"{head} {flow(value)}"


def _element(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and any(map(_is_large, value.values())):
        first, *rest = _mapping(value, f"{indent}  ")
        yield f"{indent}- {first.lstrip(' ')}"
        yield from rest
    else:
        yield f"{indent}- {flow(value)}"


def _is_large(value: Any) -> bool:
    return isinstance(value, Mapping | Include) or (isinstance(value, str) and "\n" in value)


def _block(head: str, value: str, indent: str) -> Iterator[str]:
    kept = value.rstrip("\n")
    ends = len(value) - len(kept)
    yield f"{head} |{'-' if ends == 0 else '+' if ends > 1 else ''}"
    yield from (f"{indent}  {line}" if line else "" for line in value.split("\n")[: -1 if ends else None])


def _key(key: str) -> str:
    return key if _PLAIN.fullmatch(key) and key.lower() not in _WORDS else flow(key)
