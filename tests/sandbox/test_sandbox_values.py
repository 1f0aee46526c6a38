"""How values cross the border and how they are compared."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.sandbox.inside.wire import MAX_DEPTH, MAX_DIGITS, MAX_FRAME, UnfitError, encode, unpack
from pytest_lmeval.sandbox.session import MOST_ROOM
from pytest_lmeval.sandbox.values import contains, near, ordered, parse, room, same, show, tagged, truth

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.recursive(SCALARS, lambda part: st.tuples(part, part) | st.frozensets(part, max_size=3), max_leaves=4)
VALUES = st.recursive(
    SCALARS,
    lambda part: (
        st.lists(part, max_size=4)
        | st.lists(part, max_size=4).map(tuple)
        | st.dictionaries(KEYS, part, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


def strict(value: Any) -> Any:
    """Return a form in which Python's own equality is the one that is wanted."""
    if isinstance(value, bool):
        return ("bool", str(value))
    if isinstance(value, (list, tuple)):
        return tuple(map(strict, value))
    if isinstance(value, (set, frozenset)):
        return frozenset(map(strict, value)), "set"
    if isinstance(value, dict):
        return frozenset((strict(key), strict(item)) for key, item in value.items()), "dict"
    return value


@given(VALUES)
def test_a_value_survives_the_crossing(value: Any) -> None:
    crossed = unpack(parse(f'["value",{encode(value)}]'.encode("ascii"))[1])

    assert value == crossed
    assert type(value) is type(crossed) or isinstance(value, frozenset)


@given(VALUES)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert same(tagged(value), tagged(value))


@given(VALUES, VALUES)
def test_sameness_is_pythons_equality_but_for_bool_and_tuple(left: Any, right: Any) -> None:
    assert (strict(left) == strict(right)) == same(tagged(left), tagged(right))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (True, 1, False),
        (0, 0.0, True),
        (-0.0, 0, True),
        (2**53, 2.0**53, True),
        (2**53 + 1, 2.0**53, False),
        (2**70, 2.0**70, True),
        (2**70 + 1, 2.0**70, False),
        (int(1e308), 1e308, True),
        (10**308, 1e308, False),
        (10**400, 1e308, False),
        ({int(1e308)}, {1e308}, True),
        (10**400, math.inf, False),
        (0.1 + 0.2, 0.3, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, math.nan, False),
        ([math.nan], [math.nan], False),
        ((1, 2), [1, 2], True),
        ([(1,), ()], ([1], []), True),
        ("1", 1, False),
        ("nan", "nan", True),
        ("\0", "\0", True),
        (b"a", "a", False),
        (None, False, False),
        ([], {}, False),
        ({}, set(), False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, [1, 2], False),
        ({1: "a", "b": [2]}, {"b": (2,), 1: "a"}, True),
        ({1: 1}, {True: 1}, False),
        ({1: 1}, {1.0: 1}, True),
        ({1: 1}, {"1": 1}, False),
        ({1}, {True}, False),
        ({"tuple": [1]}, (1,), False),
        ({(1, 2): 3}, {(1, 2): 3.0}, True),
        (["a,b"], ["a", "b"], False),
        (['a","b'], ["a", "b"], False),
        ("é", "e\u0301", False),
        ("\ud800", "\ud800", True),
    ],
)
def test_equality_case_by_case(left: Any, right: Any, equal: bool) -> None:
    assert equal == same(tagged(left), tagged(right))
    assert equal == same(tagged(right), tagged(left))


class LyingInt(int):
    def __repr__(self) -> str:
        return "7"

    __str__ = __format__ = __repr__  # type: ignore[assignment]

    def __add__(self, other: object) -> int:
        return 7

    __index__ = __int__ = __pos__ = lambda self: 7


class LyingStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "lie"

    def __iter__(self) -> Any:
        return iter("lie")


class LyingDict(dict[Any, Any]):
    def items(self) -> Any:
        return [("lie", 1)]


class LyingList(list[Any]):
    def __iter__(self) -> Any:
        return iter([7])

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("liar", "truth"),
    [(LyingInt(5), 5), (LyingStr("true"), "true"), (LyingDict(a=1), {"a": 1}), (LyingList([1, 2]), [1, 2])],
)
def test_what_a_subclass_overrides_is_not_believed(liar: Any, truth: Any) -> None:
    assert same(tagged(truth), tagged(liar))
    assert type(truth) is type(unpack(tagged(liar)))


@pytest.mark.parametrize(
    "value", [object(), 1j, ..., int, range(3), bytearray(b"x"), iter([]), [object()], {1: {2: 1j}}]
)
def test_what_is_not_plain_data_is_refused(value: object) -> None:
    with pytest.raises(UnfitError, match="is not plain data"):
        encode(value)


def test_depth_and_digits_have_limits() -> None:
    deepest: list[Any] = []
    for _ in range(MAX_DEPTH):
        deepest = [deepest]

    assert "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1) == encode(deepest)
    with pytest.raises(UnfitError, match="deeper than 100"):
        encode([deepest])
    assert str(10**MAX_DIGITS - 1) == encode(10**MAX_DIGITS - 1)
    with pytest.raises(UnfitError, match="more than 4214 digits"):
        encode(-(10**MAX_DIGITS))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"[1]",
        b'{"value": 1}',
        b'["value", NaN]',
        b'["value", Infinity]',
        b'["value", 1e999]',
        b'["value", ' + b"1" * 4215 + b"]",
        b'["value", -' + b"1" * 5000 + b"]",
        b"[" * 100_000,
        b'["value", {}]',
        b'["value", {"a": 1, "b": 2}]',
        b'["value", {"object": []}]',
        b'["value", {"tuple": 1}]',
        b'["value", {"set": "ab"}]',
        b'["value", {"dict": [[1]]}]',
        b'["value", {"dict": [[1, 2, 3]]}]',
        b'["value", {"dict": {"tuple": []}}]',
        b'["value", {"bytes": "6"}]',
        b'["value", {"bytes": []}]',
        b'["value", {"float": "1.5"}]',
        b'["value", {"float": []}]',
        b'["value", "\xff"]',
        b'["value", 1] ["value", 1]',
    ],
)
def test_an_unsound_message_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):
        parse(payload)


def test_keys_whose_hashes_collide_are_compared_in_reasonable_time() -> None:
    # With a hash table this would take many minutes.
    pairs = [[n * (2**61 - 1), 0] for n in range(60_000)]

    assert same({"dict": pairs}, {"dict": pairs[::-1]})
    assert contains({"set": [key for key, _ in pairs]}, pairs[-1][0])


@pytest.mark.parametrize(
    ("symbol", "left", "right", "holds"),
    [
        ("<", 1, 2.5, True),
        (">=", 2, 2, True),
        ("<", "a", "b", True),
        ("<", [1, 2], (1, 3), True),
        (">", (2,), [1, 5], True),
        ("<", math.nan, 1, False),
        (">", math.inf, 10**400, True),
        ("<", True, 2, False),
        ("<", None, 2, False),
        ("<", "1", 2, False),
        ("<=", {1}, {1, 2}, False),
        (">", {1: 2}, 0, False),
        ("<", [None], [1], False),
    ],
)
def test_order(symbol: str, left: Any, right: Any, holds: bool) -> None:
    assert holds == ordered(symbol, tagged(left), tagged(right))


@pytest.mark.parametrize(
    ("container", "item", "holds"),
    [
        ([1, 2], 2.0, True),
        ((1, [2]), (2,), True),
        ([1], True, False),
        ({"a": 1}, "a", True),
        ({"a": 1}, 1, False),
        ({1, 2}, 2, True),
        ("abc", "bc", True),
        ("abc", 1, False),
        (b"ab", 97, False),
        (5, 5, False),
        ([math.nan], math.nan, False),
    ],
)
def test_membership(container: Any, item: Any, holds: bool) -> None:
    assert holds == contains(tagged(container), tagged(item))


@pytest.mark.parametrize(
    ("value", "centre", "holds"),
    [
        (1.41, 1.41, True),
        (2, 1.5, False),
        (True, 1, False),
        ("1", 1, False),
        (math.nan, 1, False),
        (10**400, 1.5, False),
    ],
)
def test_nearness(value: Any, centre: float, holds: bool) -> None:
    assert holds == near("<", tagged(value), centre, 0.1)


@given(VALUES)
def test_truth_is_pythons(value: Any) -> None:
    assert bool(value) == truth(tagged(value))


@given(VALUES)
def test_a_shown_value_is_short_printable_text(value: Any) -> None:
    text = show(tagged(value))

    assert len(text) <= 80
    json.dumps(text).encode("ascii")
    assert text.isascii()


def test_the_room_of_a_message_grows_with_what_it_holds() -> None:
    assert room(b'["value",1,null]') < 1000
    assert room(b'["value",[' + b"[]," * 10**6 + b"1],null]") > 100 << 20
    assert room(b'["value",[' + b'"",' * 10**6 + b"1],null]") > 50 << 20


HOSTILE: dict[str, Callable[[], bytes]] = {
    "keys": lambda: b'["value",{' + b",".join(b'"%05x":0' % n for n in range(390_000)) + b"}]",
    "keys with a blank": lambda: b'["value",{' + b",".join(b'"%05x" :0' % n for n in range(380_000)) + b"}]",
    "lists in UTF-16": lambda: '["\u2200",['.encode("utf-16-le") + "[],".encode("utf-16-le") * 690_000,
    "escaped quotes": lambda: b'["value","' + b'\\\\"aa' * 800_000,
    "a wide text": lambda: '["value","\U0001f600'.encode() + b"x" * 4_000_000 + b'",null]',
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_message_takes_no_more_memory_than_is_allowed(make: Callable[[], bytes]) -> None:
    payload = make()
    assert len(payload) <= MAX_FRAME
    tracemalloc.start()
    try:
        # As the session does: what is estimated to take more is not parsed.
        if room(payload) <= MOST_ROOM:
            with contextlib.suppress(ValueError):
                parse(payload)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20 << 20


@pytest.mark.parametrize("other", [5, 1e308, "x", {}, {1e308}, {1: 2}, b"x", float("inf"), None])
def test_a_large_value_is_compared_with_another_kind_or_size_without_its_text(other: Any) -> None:
    large, small = {"set": [1e308] * 300_000}, tagged(other)
    tracemalloc.start()
    try:
        assert not same(large, small)
        assert not same(small, large)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 16


def test_large_floats_take_little_more_room_than_themselves() -> None:
    large = {"set": [1e308 - number * 1e293 for number in range(20_000)]}
    tracemalloc.start()
    try:
        assert same(large, {"set": large["set"][::-1]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300 * 20_000


def test_honest_keys_take_the_room_of_their_objects() -> None:
    payload = b'["value",[' + b",".join([b'{"tuple":[1,2]}'] * 10_000) + b"],null]"

    assert room(payload) == len(payload) + 20_001 * 60 + 20_002 * 200


@pytest.mark.parametrize(
    ("character", "width"),
    [("a", 1), ("\u00e4", 1), ("\u4e2d", 2), ("\U0001f600", 4), ("\\\\u4e2d", 1), ("\\\\\\\\ud83d", 1)],
)
def test_one_wide_character_makes_all_of_a_text_as_wide(character: str, width: int) -> None:
    text = character + "a" * 3_900_000
    payload = json.dumps(["value", text, None]).encode("ascii")
    assert len(payload) <= room(payload)
    assert sys.getsizeof(text) - 1000 < room(payload) < width * len(payload) + 1000


def test_a_text_of_escapes_alone_takes_what_it_takes() -> None:
    text = "\U0001f600" * 300_000
    payload = json.dumps(["value", text, None]).encode("ascii")
    assert sys.getsizeof(text) < room(payload) < len(payload) + 1000


def test_structure_in_a_long_text_takes_no_room_of_its_own() -> None:
    payload = b'["value","' + b'[{,\\"' * 700_000 + b'",null]'

    assert len(payload) < room(payload) < len(payload) * 2 + 1000


def test_a_large_number_is_shown_as_it_was_written() -> None:
    assert ("1124000727777607680000", "[1e+308,3]") == (show(tagged(1124000727777607680000)), show(tagged([1e308, 3])))


@pytest.mark.parametrize("value", [[[1] * 10**5] * 3, "x" * 10**6, {"a": ["b" * 10**5]}, [{1}] * 10**4, (1, (2,))])
def test_a_value_is_shown_as_its_start(value: Any) -> None:
    text = show(tagged(value))

    assert len(text) <= 80
    assert text.startswith(("[[1,1,", '"xxx', '{"a":["b', "[<1>,<1>", "[1,[2]]"))
