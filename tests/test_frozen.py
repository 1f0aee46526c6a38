"""The decorator of ``frozen.py`` does what ``dataclasses.dataclass`` does."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any

import pytest

from pytest_lmeval import frozen

Decorator = Callable[..., Callable[[type], Any]]
KINDS: Mapping[str, dict[str, Any]] = {
    "mutable": {},
    "frozen": {"frozen": True},
    "by keyword": {"frozen": True, "kw_only": True},
    "with its own repr": {"frozen": True, "repr": False},
    "equal by identity": {"eq": False},
    "frozen, equal by identity": {"frozen": True, "eq": False},
    "with its own init": {"init": False},
}


def _pair(decorator: Decorator, **options: Any) -> Any:
    class Pair:
        """Two numbers and what is said of them."""

        left: float
        right: float = 2
        notes: dict[str, int] = field(default_factory=dict)
        nth: int = field(default=0, compare=False, repr=False)
        twice: float = field(kw_only=True, default=0)
        half: float = field(init=False, compare=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "half", self.left / 2)

    Pair.__qualname__ = "Pair"
    globals()["Pair"] = made = decorator(slots=True, **options)(Pair)
    return made


def _outcome(action: Callable[[], Any]) -> str:
    try:
        return repr(action()).partition(" at 0x")[0]
    except (AttributeError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def _behaviour(decorator: Decorator, **options: Any) -> dict[str, str]:
    kind = _pair(decorator, **options)
    one = kind(left=1, nth=4) if options.get("init", True) else kind()
    actions: dict[str, Callable[[], Any]] = {
        "repr": lambda: one,
        "defaults": lambda: (one.right, one.notes, one.nth),
        "equal": lambda: (one == kind(left=1), one == kind(left=2), one == 1, one == one),
        "hash": lambda: hash(one) == hash(kind(left=1)) or isinstance(hash(one), int),
        "assign": lambda: setattr(one, "left", 3),
        "delete": lambda: delattr(one, "left"),
        "too few": kind,
        "too many": lambda: kind(1, 2, {}, 3, 4, 5),
        "unknown": lambda: kind(left=1, middle=2),
        "signature": lambda: [(each.name, each.kind) for each in inspect.signature(kind).parameters.values()],
        "pickle": lambda: pickle.loads(pickle.dumps(one)),
        "copy": lambda: copy.copy(one),
        "replace": lambda: replace(one, left=9),
        "asdict": lambda: dataclasses.asdict(one),
        "fields": lambda: [each.name for each in fields(one)],
        "match": lambda: kind.__match_args__,
        "params": lambda: kind.__dataclass_params__,
        "no dict": lambda: one.__dict__,
    }
    return {name: _outcome(action) for name, action in actions.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_behaves_as_one_of_dataclasses(kind: str) -> None:
    assert _behaviour(dataclasses.dataclass, **KINDS[kind]) == _behaviour(frozen.dataclass, **KINDS[kind])


def test_a_frozen_class_refuses_any_attribute() -> None:
    pair = _pair(frozen.dataclass, frozen=True)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'colour'"):
        pair.colour = "red"


def test_methods_of_the_class_itself_stay() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Word:
        text: str

        def __post_init__(self) -> None:
            object.__setattr__(self, "text", self.text.lower())

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Word) and self.text[0] == other.text[0]

        def __repr__(self) -> str:
            return self.text

    assert (Word("Apple") == Word("ant"), repr(Word("Apple")), hash(Word("a")) == hash(Word("A"))) == (
        *(True, "apple", True),
    )


def test_a_class_with_one_field_compares_it_as_a_tuple_does() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Number:
        value: float

    nothing = float("nan")
    assert Number(nothing) == Number(nothing)
    assert {Number(1): "one"}[Number(1.0)] == "one"


def test_a_class_of_a_class_has_the_fields_of_both() -> None:
    @frozen.dataclass(frozen=True, slots=True)
    class Base:
        left: int

    @frozen.dataclass(frozen=True, slots=True)
    class Derived(Base):
        right: int = 2

    assert (Derived(1).left, Derived(1).right, Derived(1) == Derived(1, 2)) == (1, 2, True)


def test_a_value_that_holds_itself_has_a_repr() -> None:
    @frozen.dataclass(slots=True)
    class Box:
        inside: Any = None

    box = Box()
    box.inside = [box]
    assert "Box(inside=[...])" in repr(box)
