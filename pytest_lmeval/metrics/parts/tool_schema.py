"""Check the arguments of an expected or actual tool call against its tool's JSON Schema.

A name outside ``properties`` is invalid unless the schema has ``additionalProperties`` or ``patternProperties``. The
function :func:`unchecked` returns the keywords that the check ignores. The package jsonschema is unsuitable, because it
accepts names outside ``properties``, does not report ignored keywords, and runs patterns without a time limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

from pytest_lmeval.compact_json import json_equal, json_key
from pytest_lmeval.errors import nearest
from pytest_lmeval.metrics.parts.patterns import compiled
from pytest_lmeval.numbers import is_number, is_whole

_Path = tuple[str, ...]
_DEEPEST = 50
_MOST_STEPS = 100_000
_SHOWN = 80
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_whole(value) or (is_number(value) and float(value).is_integer()),
    "number": lambda value: is_whole(value) or is_number(value),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
}
TYPES = tuple(sorted(_KINDS))
IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
"""Keywords whose value is a list of schemas."""
BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas."""
_ALONE = ("items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames")
# Keywords whose schemas apply to the same value.
_OF_THE_SAME = ("anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas")
# Keywords that do not restrict a value.
_WITHOUT_EFFECT = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "strict"),
        *("$schema", "$id", "$comment", "$defs", "definitions"),
    }
)


def schema_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a tool's parameters; a tool without a schema takes no parameters."""
    found = tool.get("parameters", _NO_PARAMETERS)
    return found if isinstance(found, Mapping) else _NO_PARAMETERS


def fault(value: Any, schema: Mapping[str, Any], *, partial: bool = False) -> str:
    """Return the first violation of ``schema`` in ``value``, with its position, or "".

    A ``partial`` value may lack required names at the top level. Raises TookTooLong if a pattern takes too long.
    """
    return _first(_Check(schema).of(value, {**schema, "required": []} if partial else schema, ()))


def unchecked(schema: Any, root: Any = None) -> set[str]:
    """Return the keywords of ``schema``, a part of ``root``, that :func:`fault` ignores."""
    if not isinstance(schema, Mapping):
        return set()
    root = schema if root is None else root
    found = {word for word in schema if word not in _CHECKED | _WITHOUT_EFFECT}
    if isinstance(pattern := schema.get("pattern"), str) and not _is_pattern(pattern):
        found.add(f"pattern {pattern!r:.80}")
    if "$ref" in schema and _target(root, schema["$ref"]) is None:
        found.add(f"$ref {schema['$ref']!r:.80}")
    inner = (unchecked(each, root) for word, _, each in within(schema) if word in _CHECKED | _WITHOUT_EFFECT)
    return found.union(*inner)


def within(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield each schema directly inside ``schema``, preceded by its keyword and position."""
    for word in IN_LISTS:
        if isinstance(schema.get(word), list):
            yield from ((word, f"{word}[{number}]", each) for number, each in enumerate(schema[word]))
    yield from ((word, word, schema[word]) for word in _ALONE if word in schema)
    for word in BY_NAME:
        if isinstance(schema.get(word), Mapping):
            yield from ((word, f"{word}.{name}", each) for name, each in schema[word].items())


Faults = Iterator[str]


class _Check:
    """Checks values against ``root`` and its inner schemas; each method yields errors, and messages show the first."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_STEPS
        self._referred: set[tuple[int, _Path]] = set()

    def of(self, value: Any, schema: Any, path: _Path, *, whole: bool = True) -> Faults:
        self._left -= 1
        if len(path) > _DEEPEST or self._left < 0:
            yield _placed(path[:1], f"nested deeper than {_DEEPEST}, or too long to check")
        elif isinstance(schema, bool):
            yield "" if schema else _placed(path, "no value is allowed")
        else:
            if whole and isinstance(value, Mapping):
                yield from self._unknown_name(value, schema, path)
            for word, said in schema.items():
                kind, holds = _HOLDS.get(word, ("", None))
                if holds is not None and (not kind or _KINDS[kind](value)) and not holds(value, said):
                    yield _placed(path, _against(word, said, value))
                kind, look = _LOOKS.get(word, ("", None))
                if look is not None and (not kind or _KINDS[kind](value)):
                    yield from look(self, value, schema, path)

    def _unknown_name(self, value: Mapping[str, Any], schema: Any, path: _Path) -> Faults:
        parts = [*self._parts(schema, set())]
        free = any("additionalProperties" in part or "patternProperties" in part for part in parts)
        if not free and any("properties" in part for part in parts):
            known = {name: None for part in parts for name in part.get("properties", ())}
            yield from (_no_parameter(name, known, path) for name in value if name not in known)

    def _parts(self, schema: Any, seen: set[int]) -> Iterator[Mapping[str, Any]]:
        """Yield ``schema`` and all schemas in it that apply to the same value."""
        if isinstance(schema, Mapping) and id(schema) not in seen:
            seen.add(id(schema))
            yield schema
            inner = [each for word, _, each in within(schema) if word in _OF_THE_SAME]
            for each in (*inner, _target(self._root, schema.get("$ref"))):
                yield from self._parts(each, seen)

    def required(self, value: Any, schema: Any, path: _Path) -> Faults:
        missing = (name for name in schema["required"] if name not in value)
        yield from (_placed((*path, name), "it is required, and missing") for name in missing)

    def names(self, value: Any, schema: Any, path: _Path) -> Faults:
        for name, inner in schema["properties"].items():
            if name in value:
                yield from self.of(value[name], inner, (*path, name))

    def patterns(self, value: Any, schema: Any, path: _Path) -> Faults:
        for pattern, inner in schema["patternProperties"].items():
            for name, each in value.items():
                if _finds(pattern, name):
                    yield from self.of(each, inner, (*path, name))

    def others(self, value: Any, schema: Any, path: _Path) -> Faults:
        rest, known = schema["additionalProperties"], schema.get("properties", {})
        for name in value if rest is not True else ():
            if name in known or any(_finds(each, name) for each in schema.get("patternProperties", ())):
                continue
            if rest is False:
                yield _no_parameter(name, known, path)
            yield from self.of(value[name], rest, (*path, name))

    def items(self, value: Any, schema: Any, path: _Path) -> Faults:
        first = len(schema.get("prefixItems", ()))
        for number, each in enumerate(value[first:], start=first):
            yield from self.of(each, schema["items"], (*path, str(number)))

    def first_items(self, value: Any, schema: Any, path: _Path) -> Faults:
        for number, (each, inner) in enumerate(zip(value, schema["prefixItems"], strict=False)):
            yield from self.of(each, inner, (*path, str(number)))

    def all_of(self, value: Any, schema: Any, path: _Path) -> Faults:
        for each in schema["allOf"]:
            yield from self.of(value, each, path, whole=False)

    def any_of(self, value: Any, schema: Any, path: _Path) -> Faults:
        faults = [self._first(value, each, path) for each in schema["anyOf"]]
        if "" not in faults:
            yield _placed(path, f"valid by none of anyOf: {'; '.join(faults)[: 2 * _SHOWN]}")

    def one_of(self, value: Any, schema: Any, path: _Path) -> Faults:
        faults = [self._first(value, each, path) for each in schema["oneOf"]]
        fitting, wrong = faults.count(""), "; ".join(filter(None, faults))[: 2 * _SHOWN]
        if fitting != 1:
            yield _placed(path, f"valid by {fitting} of oneOf, expected one: {wrong}")

    def pattern(self, value: Any, schema: Any, path: _Path) -> Faults:
        if not _finds(schema["pattern"], value):
            yield _placed(path, f"{_json(value)} does not match {schema['pattern']!r:.80}")

    def reference(self, value: Any, schema: Any, path: _Path) -> Faults:
        target = _target(self._root, schema["$ref"])
        key = (id(target), path)
        if target is not None and key not in self._referred:  # a circular reference adds no check
            self._referred.add(key)
            found = self._first(value, target, path)
            self._referred.discard(key)
            yield found

    def _first(self, value: Any, schema: Any, path: _Path) -> str:
        return _first(self.of(value, schema, path, whole=False))


# By keyword: the kind of value that it applies to, "" for any, and the method that checks it.
_LOOKS: Mapping[str, tuple[str, Callable[[_Check, Any, Any, _Path], Faults]]] = {
    "$ref": ("", _Check.reference),
    "required": ("object", _Check.required),
    "properties": ("object", _Check.names),
    "patternProperties": ("object", _Check.patterns),
    "additionalProperties": ("object", _Check.others),
    "items": ("array", _Check.items),
    "prefixItems": ("array", _Check.first_items),
    "allOf": ("", _Check.all_of),
    "anyOf": ("", _Check.any_of),
    "oneOf": ("", _Check.one_of),
    "pattern": ("string", _Check.pattern),
}


def _is_multiple(value: float, of: float) -> bool:
    # As decimal numbers: 0.3 is a multiple of 0.1.
    from fractions import Fraction  # few schemas need it, but every run would import it

    return not Fraction(str(value)) % Fraction(str(of))


_COUNTED = {"Length": "string", "Items": "array", "Properties": "object"}
_Holds = Mapping[str, tuple[str, Callable[[Any, Any], bool]]]
_BOUNDS: _Holds = {
    "minimum": ("number", ge),
    "maximum": ("number", le),
    "exclusiveMinimum": ("number", gt),
    "exclusiveMaximum": ("number", lt),
    "multipleOf": ("number", _is_multiple),
    **{f"min{of}": (kind, lambda value, said: len(value) >= said) for of, kind in _COUNTED.items()},
    **{f"max{of}": (kind, lambda value, said: len(value) <= said) for of, kind in _COUNTED.items()},
}
NUMBERS = tuple(_BOUNDS)
"""Keywords whose value is a number."""
# By keyword: the kind of value that it applies to, "" for any, and its condition.
_HOLDS: _Holds = {
    "type": ("", lambda value, said: any(_KINDS[kind](value) for kind in _listed(said) if kind in _KINDS)),
    "enum": ("", lambda value, said: any(json_equal(value, each) for each in said)),
    "const": ("", json_equal),
    "uniqueItems": ("array", lambda value, said: not said or len({*map(json_key, value)}) == len(value)),
    **_BOUNDS,
}
_CHECKED = {*_LOOKS, *_HOLDS}


def _against(word: str, said: Any, value: Any) -> str:
    if word not in ("type", "enum", "const"):
        return f"{_json(value)} is against {word} {_json(said)}"
    kinds, choices = " or ".join(map(str, _listed(said))), ", ".join(map(_json, _listed(said)))[:_SHOWN]
    expected = {"type": kinds, "enum": f"one of {choices}", "const": _json(said)}
    return f"expected {expected[word]}, got {_json(value)}"


def _listed(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _no_parameter(name: str, known: Mapping[str, Any], path: _Path) -> str:
    choices = f" (choices: {', '.join(known)})" if known else ""
    return _placed((*path, name), f"there is no parameter {name[:_SHOWN]!r}{nearest(name, known)}{choices}")


def _target(root: Any, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    try:
        for step in steps_of(reference):
            found = found[key_in(found, step)]
    except LookupError:
        return None
    return found if isinstance(found, Mapping | bool) else None


def steps_of(pointer: str) -> _Path:
    """Return a JSON pointer's steps; text before the first slash is ignored."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def key_in(whole: Any, step: str) -> str | int:
    """Return the key or index in ``whole`` that a JSON pointer's step refers to, or raise LookupError."""
    if isinstance(whole, Mapping):
        return step
    if isinstance(whole, list) and step.isdecimal() and int(step) < len(whole):
        return int(step)
    raise LookupError(step)


def _is_pattern(pattern: str) -> bool:
    # JSON Schema uses ECMAScript's patterns, a few of which are invalid in Python.
    try:
        compiled(pattern)
    except ValueError:
        return False
    return True


def _finds(pattern: str, text: str) -> bool:
    return not _is_pattern(pattern) or compiled(pattern).search(text)


def _first(faults: Iterable[str]) -> str:
    return next(filter(None, faults), "")


def _placed(path: _Path, what: str) -> str:
    return f"argument {'/'.join(path)[:200]}: {what}" if path else what


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:_SHOWN]
