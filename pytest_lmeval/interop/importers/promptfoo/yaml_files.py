"""YAML as configs of promptfoo have it: with merge keys, and with ``$ref`` to other parts of the same file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]  # no types are published with it

from pytest_lmeval.formats.yaml.document import Keys, Location, YamlDocument, YamlFault
from pytest_lmeval.formats.yaml.parse import DocumentReader, parse_yaml

REFERENCE = "$ref"
_MOST_VALUES = 100_000
_DEEPEST = 50
_PLACE = Location(1, 1)


class _MergeKey(str):
    """The key ``<<`` without quotes, whose value has entries to add."""

    __slots__ = ()


class _MergingReader(DocumentReader):
    """Reads merge keys too; entries that were merged have the place of their key."""

    def _key(self, event: Any, mapping: Any) -> str:
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            return _MergeKey("<<")
        return super()._key(event, mapping)

    def _mapping(self, start: Any, keys: Keys) -> dict[str, Any]:
        values = super()._mapping(start, keys)
        key = next((each for each in values if isinstance(each, _MergeKey)), None)
        if key is None:
            return values
        place = self.places[(*keys, key)]
        given = values.pop(key)
        merged: dict[str, Any] = {}
        for part in given if isinstance(given, list) else [given]:
            if not isinstance(part, dict):
                raise YamlFault(place, "<< expects a mapping or a list of mappings")
            merged = {**part, **merged}
        self.places |= {(*keys, name): place for name in merged.keys() - values.keys()}
        return {**merged, **values}


def parse_config(data: bytes) -> Any:
    """Return the value of a YAML file, a YamlDocument where it is a mapping; raise YamlFault."""
    return parse_yaml(data, kind=_MergingReader)


def resolved(document: Any) -> tuple[Any, frozenset[str]]:
    """Return a value in which each ``$ref`` to a part of it is that part, and which parts were referred to.

    One to another file, or to nothing, stays as it is. Raise YamlFault for a circle, and for more than 100,000 values.
    """
    resolver = _Resolver(document)
    value = resolver.value(document, ())
    plain = YamlDocument(value, document.places, document.includes) if isinstance(document, YamlDocument) else value
    return plain, frozenset(resolver.used)


class _Resolver:
    """Replaces references, and counts what comes of them."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._count = 0
        self.used: set[str] = set()

    def value(self, given: Any, inside: tuple[str, ...]) -> Any:
        self._count += 1
        if self._count > _MOST_VALUES or len(inside) > _DEEPEST:
            raise YamlFault(_PLACE, f"more than {_MOST_VALUES:,} values, or {_DEEPEST} references in one another")
        if isinstance(given, list):
            return [self.value(each, inside) for each in given]
        if not isinstance(given, Mapping):
            return given
        pointer = given.get(REFERENCE)
        if isinstance(pointer, str) and (found := _at(self._document, pointer)) is not _NOTHING:
            return self._referred(given, pointer, found, inside)
        return {key: self.value(each, inside) for key, each in given.items()}

    def _referred(self, given: Mapping[str, Any], pointer: str, found: Any, inside: tuple[str, ...]) -> Any:
        if pointer in inside:
            raise YamlFault(_PLACE, f"$ref {pointer!r:.60} refers to itself")
        self.used.add(pointer)
        found = self.value(found, (*inside, pointer))
        beside = {key: self.value(each, inside) for key, each in given.items() if key != REFERENCE}
        return {**found, **beside} if isinstance(found, Mapping) else found


_NOTHING = object()


def _at(document: Any, pointer: str) -> Any:
    """Return the part that a JSON Pointer behind ``#`` names (RFC 6901)."""
    if not pointer.startswith("#/"):
        return _NOTHING
    value = document
    for part in pointer[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _NOTHING
    return value
