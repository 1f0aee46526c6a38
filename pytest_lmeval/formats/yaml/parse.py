"""Parse YAML into plain values with their positions.

Values are mappings with string keys, lists, strings, numbers, booleans and null. The only tag is ``!include``. The
module refuses merge keys, and aliases that make a document much larger than its text. PyYAML produces the events, and
this module interprets them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # no types are published with it

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.yaml.document import MAX_BYTES, Included, Includer, Keys, Location, YamlDocument, YamlFault

MAX_DEPTH = 50
MAX_NODES = 100_000
_STANDARD_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNQUOTED = re.compile(r"(?:[:-]\s+|^\s*)(\{[{%].*)")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None, "true": True, "True": True, "TRUE": True} | {
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_BASED = re.compile(r"0o[0-7]{1,2000}|0x[0-9a-fA-F]{1,2000}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_QUOTE = "quote a template that starts a value"
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")


def parse_yaml(data: bytes, includer: Includer | None = None) -> Any:
    """Return the value of a YAML file, a mapping as a :class:`YamlDocument`; raise YamlFault for invalid YAML.

    ``includer`` reads the files that ``!include`` names; without an includer, ``!include`` is refused.
    """
    reader = DocumentReader(data, includer)
    value = reader.read()
    return YamlDocument(value, reader.places, reader.includes) if isinstance(value, dict) else value


def read_yaml(path: Path) -> Any:
    """Return the value of a YAML file; raise UsageError with line and column if it cannot be read."""
    try:
        return parse_yaml(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except YamlFault as fault:
        raise UsageError(f"{path}:{fault.place.line}: column {fault.place.column}: {fault.detail}") from None


def syntax_fault(data: bytes) -> YamlFault | None:
    """Return the error that makes ``data`` invalid YAML, or None.

    A result of None does not mean that :func:`parse_yaml` accepts the data. The function does not check data that are
    too large for a task file.
    """
    if len(data) > MAX_BYTES:
        return None
    try:
        for _ in _events(_decode(data)):
            pass
    except YamlFault as fault:
        return fault
    return None


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise YamlFault(Location(1, 1), f"{len(data):,} bytes; a YAML file may have at most {MAX_BYTES:,}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlFault(Location(line, 1), f"not UTF-8: byte 0x{data[error.start]:02x}") from None


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(mark) if mark else Location(1, 1)
        raise YamlFault(place, _explained(error, text, place.line)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlFault(Location(line, 1), f"the character U+{error.character:04X} is not allowed in YAML") from None


def _explained(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    problem = str(error.problem or error.context or "not YAML")
    shown = next(iter(text.splitlines()[line - 1 :]), "")
    if "'\\t'" in problem:
        return f"{problem}: indent with blanks, not tabs"
    if unquoted := _UNQUOTED.search(shown):
        return f"{problem}: {_QUOTE}: {_quoted(unquoted[1].strip())}"
    return problem


def _place(mark: Any) -> Location:
    return Location(mark.line + 1, mark.column + 1)


class DocumentReader:
    """Reads one document, and keeps its anchors and the number of values so far."""

    def __init__(self, data: bytes, includer: Includer | None = None) -> None:
        text = _decode(data)
        self._events = _events(text)
        self._includer = includer
        self._lines = text.splitlines()
        self.places: dict[Keys, Location] = {}
        self.includes: dict[Keys, Included] = {}
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def read(self) -> Any:
        """Return the value of the only document, or None if there is no document."""
        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlFault(_place(event.start_mark), "a second document; expected one per file")
                value = self._value(next(self._events), ())
        return value

    def _value(self, event: Any, keys: Keys) -> Any:
        self._count(1, event)
        if len(keys) > MAX_DEPTH:
            raise YamlFault(_place(event.start_mark), f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._nodes
        value = self._new_value(event, keys)
        if event.anchor:
            self._anchors[event.anchor] = value, self._nodes - before + 1
        return value

    def _new_value(self, event: Any, keys: Keys) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, keys)
        if event.tag is not None:
            raise _tag_fault(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(keys)
        return self._mapping(event, keys)

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YamlFault(_place(event.start_mark), f"more than {MAX_NODES:,} values, aliases written out")

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise YamlFault(_place(event.start_mark), f"the alias *{event.anchor} names no value that ends before it")
        value, size = self._anchors[event.anchor]
        self._count(size, event)
        return value

    def _sequence(self, keys: Keys) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            path = (*keys, len(values))
            self.places[path] = _place(event.start_mark)
            values.append(self._value(event, path))
        return values

    def _mapping(self, start: Any, keys: Keys) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, start)
            place = _place(event.start_mark)
            path = (*keys, key)
            if key in values:
                raise YamlFault(place, f"the key {key!r} is already on line {self.places[path].line}")
            self.places[path] = place
            values[key] = self._value(next(self._events), path)
        return values

    def _key(self, event: Any, mapping: Any) -> str:
        place = _place(event.start_mark)
        if not isinstance(event, yaml.ScalarEvent):
            if isinstance(event, yaml.MappingStartEvent) and mapping.flow_style and event.flow_style:
                line, column = mapping.start_mark.line, mapping.start_mark.column
                template = "".join(self._lines[line : line + 1])[column:].strip()
                raise YamlFault(_place(mapping.start_mark), f"{_QUOTE}: {_quoted(template)}")
            raise YamlFault(place, "a key must be text, got a list or a mapping")
        if event.value == "<<" and event.implicit[0]:
            raise YamlFault(place, "merge keys (<<) are not supported; write the keys out")
        key = self._scalar(event, ())
        if not isinstance(key, str):
            raise YamlFault(place, f"the key {event.value} is not text; put it in quotes")
        return key

    def _scalar(self, event: Any, keys: Keys) -> Any:
        if event.tag == "!include":
            return self._include(event, keys)
        if event.tag is not None and event.tag not in _STANDARD_TAGS:
            raise _tag_fault(event)
        if _SURROGATE.search(event.value):
            raise YamlFault(_place(event.start_mark), "half of a character (\\ud800 to \\udfff); write it as it is")
        if event.tag is not None or not event.implicit[0]:
            return event.value
        try:
            return plain_value(event.value)
        except ValueError as error:
            raise YamlFault(_place(event.start_mark), str(error)) from None

    def _include(self, event: Any, keys: Keys) -> str:
        try:
            if self._includer is None:
                raise ValueError("nothing can be included here")
            included = self._includer.read(event.value)
        except ValueError as error:
            raise YamlFault(_place(event.start_mark), str(error)) from None
        self.includes[keys] = included
        return included.data.decode("utf-8").replace("\r\n", "\n")


def _quoted(template: str) -> str:
    return "'" + template[:200].replace("'", "''") + "'"


def _tag_fault(event: Any) -> YamlFault:
    tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
    return YamlFault(_place(event.start_mark), f"the tag {tag} is not supported; only !include is")


def plain_value(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar; raise ValueError for an ambiguous or non-finite number.

    Only ``true`` and ``false`` are booleans, while ``yes``, ``no``, ``on``, ``off`` and dates are text.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _LEADING_ZERO.fullmatch(text):
        raise ValueError(f"{text} may be read as an octal number; write it in quotes, or without the zero")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is not a finite number; write it in quotes if it is text")
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number
