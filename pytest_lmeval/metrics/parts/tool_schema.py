"""Whether the arguments of a call are valid by the JSON Schema of its tool: the same for calls expected and made.

A name that ``properties`` lacks is not valid, unless ``additionalProperties`` or ``patternProperties`` is given: a
schema that says nothing of other names allows no other. Of keywords that are not looked at,
:func:`unchecked` returns the names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any

from pytest_lmeval.compact_json import json_equal, json_key
from pytest_lmeval.errors import nearest
from pytest_lmeval.numbers import is_number, is_whole

Searches = Callable[[str, str], bool]
"""Says whether a regular expression is found in a text; it may raise what it likes if that takes too long."""

_DEEPEST = 50
_MOST_STEPS = 100_000
_SHOWN = 80
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_whole(value) or (is_number(value) and float(value).is_integer()),
    "number": lambda value: is_whole(value) or is_number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
# What says nothing of a value, or is read with another keyword.
_SAY_NOTHING = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "strict"),
        *("$schema", "$id", "$comment", "$defs", "definitions"),
    }
)
_IN_PLACE = ("anyOf", "oneOf", "allOf")


def fault(value: Any, schema: Mapping[str, Any], searches: Searches, *, partial: bool = False) -> str:
    """Return the first thing in which ``value`` is not valid by ``schema``, with its place, or "".

    Of a ``partial`` value names that are required may be missing at the top.
    """
    return _Check(searches, schema).of(value, {**schema, "required": []} if partial else schema, ())


def unchecked(schema: Any, root: Any = None) -> set[str]:
    """Return the keywords of ``schema``, a part of ``root``, that :func:`fault` does not look at."""
    if not isinstance(schema, Mapping):
        return set()
    root = schema if root is None else root
    found = {word for word in schema if word not in _CHECKED and word not in _SAY_NOTHING}
    if isinstance(pattern := schema.get("pattern"), str) and not _is_pattern(pattern):
        found.add(f"pattern {pattern!r:.80}")
    if "$ref" in schema and _target(root, schema["$ref"]) is None:
        found.add(f"$ref {schema['$ref']!r:.80}")
    for inner in _within(schema):
        found |= unchecked(inner, root)
    return found


def _within(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in ("properties", "patternProperties", "$defs", "definitions"):
        yield from schema[word].values() if isinstance(schema.get(word), Mapping) else ()
    for word in (*_IN_PLACE, "prefixItems"):
        yield from schema[word] if isinstance(schema.get(word), list) else ()
    yield from (schema[word] for word in ("items", "additionalProperties") if word in schema)


class _Check:
    """Looks at values by the schemas below ``root``; each of its methods returns the first fault, or ""."""

    def __init__(self, searches: Searches, root: Mapping[str, Any]) -> None:
        self._searches = searches
        self._root = root
        self._left = _MOST_STEPS
        self._referred: set[tuple[int, tuple[str, ...]]] = set()

    def of(self, value: Any, schema: Any, path: tuple[str, ...], *, whole: bool = True) -> str:
        self._left -= 1
        if len(path) > _DEEPEST or self._left < 0:
            return _said(path[:1], f"nested deeper than {_DEEPEST}, or too long to be looked at")
        if isinstance(schema, bool):
            return "" if schema else _said(path, "no value is allowed")
        if whole and isinstance(value, Mapping) and (unknown := self._unknown_name(value, schema, path)):
            return unknown
        for word in schema:
            kind, check = _CHECKED.get(word, ("", None))
            if check is not None and (not kind or _KINDS[kind](value)) and (found := check(self, value, schema, path)):
                return found
        return ""

    def _unknown_name(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        parts = [*self._parts(schema, set())]
        free = any("additionalProperties" in part or "patternProperties" in part for part in parts)
        if free or not any("properties" in part for part in parts):
            return ""
        known = {name: None for part in parts for name in part.get("properties", ())}
        unknown = next((name for name in value if name not in known), None)
        return "" if unknown is None else _no_parameter(unknown, known, path)

    def _parts(self, schema: Any, seen: set[int]) -> Iterator[Mapping[str, Any]]:
        """Yield ``schema`` and whatever in it speaks of the same value."""
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        seen.add(id(schema))
        yield schema
        inner = [each for word in _IN_PLACE for each in schema.get(word, ())]
        inner += [schema.get(word) for word in ("if", "then", "else")]
        inner += [*schema.get("dependentSchemas", {}).values(), _target(self._root, schema.get("$ref"))]
        for each in inner:
            yield from self._parts(each, seen)

    def kind(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if any(_KINDS[kind](value) for kind in kinds if kind in _KINDS):
            return ""
        return _said(path, f"expected {' or '.join(map(str, kinds))}, got {_json(value)}")

    def enum(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        if any(json_equal(value, each) for each in schema["enum"]):
            return ""
        return _said(path, f"expected one of {', '.join(map(_json, schema['enum']))[:_SHOWN]}, got {_json(value)}")

    def const(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        wanted = schema["const"]
        return "" if json_equal(value, wanted) else _said(path, f"expected {_json(wanted)}, got {_json(value)}")

    def required(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        missing = next((name for name in schema["required"] if name not in value), None)
        return "" if missing is None else _said((*path, missing), "it is required, and missing")

    def names(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        known = schema["properties"]
        return _first(self.of(value[name], known[name], (*path, name)) for name in known if name in value)

    def patterns(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        return _first(
            self.of(each, inner, (*path, name))
            for pattern, inner in schema["patternProperties"].items()
            for name, each in value.items()
            if self._finds(pattern, name)
        )

    def others(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        if schema["additionalProperties"] is True:
            return ""
        own = [name for name in value if name not in schema.get("properties", {})]
        left = [
            name for name in own if not any(self._finds(each, name) for each in schema.get("patternProperties", {}))
        ]
        if left and schema["additionalProperties"] is False:
            return _no_parameter(left[0], schema.get("properties", {}), path)
        return _first(self.of(value[name], schema["additionalProperties"], (*path, name)) for name in left)

    def items(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        first = len(schema.get("prefixItems", ()))
        rest = enumerate(value[first:], start=first)
        return _first(self.of(each, schema["items"], (*path, str(number))) for number, each in rest)

    def first_items(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        pairs = enumerate(zip(value, schema["prefixItems"], strict=False))
        return _first(self.of(each, inner, (*path, str(number))) for number, (each, inner) in pairs)

    def unique(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        if not schema["uniqueItems"] or len(set(map(json_key, value))) == len(value):
            return ""
        return _said(path, f"{_json(value)} is against uniqueItems {_json(schema['uniqueItems'])}")

    def all_of(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        return _first(self.of(value, each, path, whole=False) for each in schema["allOf"])

    def any_of(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        faults = [self.of(value, each, path, whole=False) for each in schema["anyOf"]]
        return "" if "" in faults else _said(path, f"valid by none of anyOf: {'; '.join(faults)[: 2 * _SHOWN]}")

    def one_of(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        faults = [self.of(value, each, path, whole=False) for each in schema["oneOf"]]
        fitting, wrong = faults.count(""), "; ".join(filter(None, faults))[: 2 * _SHOWN]
        return "" if fitting == 1 else _said(path, f"valid by {fitting} of oneOf, expected one: {wrong}")

    def pattern(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        if self._finds(schema["pattern"], value):
            return ""
        return _said(path, f"{_json(value)} does not match {schema['pattern']!r:.80}")

    def reference(self, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        target = _target(self._root, schema["$ref"])
        key = (id(target), path)
        if target is None or key in self._referred:  # it leads nowhere, or round in a circle, which asks nothing more
            return ""
        self._referred.add(key)
        found = self.of(value, target, path, whole=False)
        self._referred.discard(key)
        return found

    def _finds(self, pattern: str, text: str) -> bool:
        return not _is_pattern(pattern) or self._searches(pattern, text)


def _bound(word: str, holds: Callable[[Any, Any], bool], kind: str) -> tuple[str, _Look]:
    def check(_: _Check, value: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        if holds(value if kind == "number" else len(value), schema[word]):
            return ""
        return _said(path, f"{_json(value)} is against {word} {_json(schema[word])}")

    return kind, check


def _is_multiple(value: float, of: float) -> bool:
    # As decimal numbers: 0.3 is a multiple of 0.1.
    from fractions import Fraction  # few schemas need it, and every run would import it

    return not Fraction(str(value)) % Fraction(str(of))


_BOUNDS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (ge, "number"),
    "maximum": (le, "number"),
    "exclusiveMinimum": (gt, "number"),
    "exclusiveMaximum": (lt, "number"),
    "multipleOf": (_is_multiple, "number"),
    "minLength": (ge, "string"),
    "maxLength": (le, "string"),
    "minItems": (ge, "array"),
    "maxItems": (le, "array"),
    "minProperties": (ge, "object"),
    "maxProperties": (le, "object"),
}
NUMBERS = tuple(_BOUNDS)
"""The keywords whose value is a number."""
_Look = Callable[[_Check, Any, Any, tuple[str, ...]], str]
# By the keyword: the kind of value that it speaks of, "" for any, and what looks at it.
_CHECKED: Mapping[str, tuple[str, _Look]] = {
    "$ref": ("", _Check.reference),
    "type": ("", _Check.kind),
    "enum": ("", _Check.enum),
    "const": ("", _Check.const),
    "required": ("object", _Check.required),
    "properties": ("object", _Check.names),
    "patternProperties": ("object", _Check.patterns),
    "additionalProperties": ("object", _Check.others),
    "items": ("array", _Check.items),
    "prefixItems": ("array", _Check.first_items),
    "uniqueItems": ("array", _Check.unique),
    "allOf": ("", _Check.all_of),
    "anyOf": ("", _Check.any_of),
    "oneOf": ("", _Check.one_of),
    "pattern": ("string", _Check.pattern),
    **{word: _bound(word, *bound) for word, bound in _BOUNDS.items()},
}


def _target(root: Any, reference: Any) -> Any:
    """Return what a reference within the schema leads to; None where it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, Mapping) and name in found:
            found = found[name]
        else:
            return None
    return found if isinstance(found, Mapping | bool) else None


def _no_parameter(name: str, known: Mapping[str, Any], path: tuple[str, ...]) -> str:
    choices = f" (choices: {', '.join(known)})" if known else ""
    return _said((*path, name), f"there is no parameter {name[:_SHOWN]!r}{nearest(name, known)}{choices}")


def _is_pattern(pattern: str) -> bool:
    # JSON Schema's are ECMAScript's, and a few of those are no pattern here.
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _first(faults: Iterator[str]) -> str:
    return next(filter(None, faults), "")


def _said(path: Sequence[str], what: str) -> str:
    return f"argument {'/'.join(path)[:200]}: {what}" if path else what


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]
