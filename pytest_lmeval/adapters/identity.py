"""What an adapter is: the one key that decides whose answers may be used again, from the cache and by a resumed run."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from pytest_lmeval.adapters.resolve import Made, adapter_name, made_with
from pytest_lmeval.adapters.source import is_of_project, source_hash
from pytest_lmeval.errors import UsageError
from pytest_lmeval.redaction import is_secret_name

# Another key of the same account gets the same answers, and a run that asks nothing needs none.
_ACCESS = "api_key"
# Set by the run, and part of how answers are read.
_NOT_ITS_OWN = frozenset({"think_tags", "options", "fingerprint"})
# How far objects are followed that hold others: a configuration is near, and they may refer round in a circle.
_NEAR = 3
_KNOWN: dict[int, Identity] = {}


@dataclass(frozen=True, slots=True)
class Identity:
    """Adapters that may answer differently have different keys, as far as can be told.

    ``key`` is a SHA-256 over the spec, the options, the source and the ``fingerprint`` of an adapter. One without
    ``fingerprint`` is also known by its attributes that are plain values and are not named like secrets, and by those
    of the objects of the project's own classes that it holds. ``is_sure`` says that nothing else can decide its
    answers: it has a ``fingerprint``, or a spec and a source that can be read.
    """

    key: str
    is_sure: bool


def identity_of(adapter: Any) -> Identity:
    """Return what ``adapter`` is, as it was when this was first asked; raise UsageError for a bad ``fingerprint``."""
    found = _KNOWN.get(id(adapter))
    if found is None:
        found = _identity(adapter, made_with(adapter))
        try:
            weakref.finalize(adapter, _KNOWN.pop, id(adapter), None).atexit = False
        except TypeError:  # it cannot be referred to weakly
            return found
        _KNOWN[id(adapter)] = found
    return found


def _identity(adapter: Any, made: Made) -> Identity:
    kind, model = type(adapter), _fingerprint(adapter)
    source = source_hash(kind, made.module)
    is_ours = kind.__module__.startswith("pytest_lmeval.")
    told = {
        "name": adapter_name(adapter),
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "spec": made.spec,
        "options": _plain(_options(adapter, made)),
        "source": source,
        "fingerprint": model,
        "attributes": {} if model or is_ours else dict(_attributes(adapter)),
    }
    content = json.dumps(told, sort_keys=True).encode("utf-8", "backslashreplace")
    return Identity(sha256(content).hexdigest(), bool(model or (made.spec and source)))


def _fingerprint(adapter: Any) -> str:
    try:
        found = getattr(adapter, "fingerprint", None)
    except Exception as error:  # an adapter's own code
        raise UsageError(
            f"adapter {adapter_name(adapter)}: fingerprint raised {type(error).__name__}: {error}"
        ) from None
    if found is None or isinstance(found, str):
        return found or ""
    raise UsageError(
        f"adapter {adapter_name(adapter)}: fingerprint: expected a text, got {type(found).__name__}; "
        "a method needs @property"
    )


def _options(adapter: Any, made: Made) -> Mapping[str, Any]:
    own = getattr(adapter, "options", None)
    options = {**made.options, **(own if isinstance(own, Mapping) else {})}
    return {name: value for name, value in options.items() if not str(name).startswith(_ACCESS)}


def _attributes(holder: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    slots = [name for kind in type(holder).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    for name in sorted({*getattr(holder, "__dict__", {}), *slots} - _NOT_ITS_OWN):
        value = getattr(holder, name, None)
        if not is_secret_name(name) and _is_plain(value, depth):
            yield name, _plain(value, depth)


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, Mapping):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value)
    if value is None or isinstance(value, str | bytes | int | float | Enum | PurePath):
        return True
    return depth < _NEAR and is_of_project(type(value))


def _plain(value: Any, depth: int = 0) -> Any:
    """Return JSON that differs where values differ; what is no JSON is known by its ``repr``."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(inner, depth + 1), sort_keys=True) for inner in value)
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Enum | PurePath) or not is_of_project(type(value)):
        return repr(value)
    return [type(value).__qualname__, dict(_attributes(value, depth + 1))]
