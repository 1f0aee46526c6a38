"""A faster ``dataclasses.dataclass`` for classes with slots.

At the start of each run, ``dataclasses`` compiles six methods for each frozen class. This module compiles only
``__init__``, and uses closures for the other methods, which takes a third of the time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

_Methods = dict[str, Callable[..., Any] | None]


def _dataclass(**options: bool) -> Callable[[type], type]:
    """Return a decorator like ``dataclasses.dataclass``, but faster for classes with slots."""

    def make(kind: type) -> type:
        is_derived = any("__dataclass_fields__" in vars(base) for base in kind.__mro__[1:])
        if is_derived or not options.get("slots"):
            return dataclasses.dataclass(**options)(kind)
        # Without a docstring, dataclasses derives one from the signature, which takes as long as all the rest.
        kind.__doc__ = kind.__doc__ or kind.__name__
        bare = options | {"init": False, "repr": False, "eq": False, "frozen": False}
        made: Any = dataclasses.dataclass(**bare)(kind)
        given = made.__dataclass_params__
        for name in ("init", "repr", "eq"):
            setattr(given, name, options.get(name, True))
        given.frozen = options.get("frozen", False)
        for name, method in _methods(made, dataclasses.fields(made)).items():
            _add(made, name, method)
        return made  # type: ignore[no-any-return]  # Any, so that its fields can be set

    return make


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass


def _methods(kind: Any, fields: tuple[Field[Any], ...]) -> _Methods:
    given, names = kind.__dataclass_params__, [each.name for each in fields]
    found: _Methods = {}
    if given.init:
        found["__init__"] = _init(kind, fields, is_frozen=given.frozen)
    if given.repr:
        found["__repr__"] = _repr([each.name for each in fields if each.repr])
    if given.eq:
        found |= _comparing([each.name for each in fields if each.compare])
    if given.eq and not given.frozen:
        found["__hash__"] = None
    if given.frozen:
        found |= _refusing(kind, frozenset(names)) | _pickling(kind, names)
    return found


def _add(kind: type, name: str, method: Callable[..., Any] | None) -> None:
    # A class with __eq__ but without __hash__ has __hash__ = None.
    if vars(kind).get(name) is None:
        if method is not None:
            method.__name__, method.__qualname__ = name, f"{kind.__qualname__}.{name}"
        setattr(kind, name, method)


class _Factory:
    """A placeholder for a default that a factory creates."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Factory()


def _init(kind: type, fields: tuple[Field[Any], ...], *, is_frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"__name__": kind.__module__, "_MADE": _MADE}
    lines = []
    for each in fields:
        if not each.init:  # __post_init__ sets it
            continue
        name = value = each.name
        if each.default_factory is not MISSING:
            known[f"_default_{name}"] = each.default_factory
            value = f"_default_{name}() if {name} is _MADE else {name}"
        elif each.default is not MISSING:
            known[f"_default_{name}"] = each.default
        known[f"_set_{name}"] = getattr(kind, name).__set__
        lines.append(f" _set_{name}(self,{value})\n" if is_frozen else f" self.{name}={value}\n")
    if hasattr(kind, "__post_init__"):
        lines.append(" self.__post_init__()\n")
    exec(f"def __init__({_parameters(fields)}):\n{''.join(lines) or ' pass'}", known)
    made: Callable[..., None] = known["__init__"]
    return made


def _parameters(fields: tuple[Field[Any], ...]) -> str:
    given = [each for each in fields if each.init]
    by_name = [_parameter(each) for each in given if each.kw_only]
    found = ["self", *(_parameter(each) for each in given if not each.kw_only)]
    return ",".join([*found, "*", *by_name] if by_name else found)


def _parameter(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"{field.name}=_MADE"
    return field.name if field.default is MISSING else f"{field.name}=_default_{field.name}"


def _repr(shown: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def shown_as(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return shown_as


def _comparing(compared: list[str]) -> _Methods:
    values = _values(compared)

    def equals(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equals, "__hash__": hashed}


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    # attrgetter returns a bare value for one name, and needs at least one.
    return attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, name) for name in names)


def _refusing(kind: Any, names: frozenset[str]) -> _Methods:
    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _pickling(kind: Any, names: list[str]) -> _Methods:
    values, setters = _values(names), [getattr(kind, name).__set__ for name in names]

    def get_state(self: Any) -> list[Any]:
        return list(values(self))

    def set_state(self: Any, state: list[Any]) -> None:
        for set_value, value in zip(setters, state, strict=True):
            set_value(self, value)

    return {"__getstate__": get_state, "__setstate__": set_state}
