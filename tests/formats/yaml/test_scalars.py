"""What an unquoted word means: YAML 1.2's core schema, and what is refused because elsewhere it means another thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.formats.yaml.parse import plain_value
from tests.tables import each_row


@each_row("word", ["yes", "no", "on", "off", "y", "N", "No", "YES", "2024-01-01", "1_000", "0b1", "1:30"])
def test_words_that_older_yaml_converts_are_text(word: str) -> None:
    assert word == plain_value(word)


@each_row(
    ("word", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
    ],
)
def test_the_core_schema_is_kept(word: str, value: Any) -> None:
    read = plain_value(word)
    assert (type(value), value) == (type(read), read)


@each_row("word", ["010", "-007", ".nan", ".inf", "-.INF", "1e999"])
def test_what_is_no_plain_number_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"quotes|too large"):
        plain_value(word)


@given(st.integers())
def test_every_integer_is_read_as_itself(number: int) -> None:
    assert number == plain_value(str(number))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_is_read_as_itself(number: float) -> None:
    assert number == plain_value(repr(number))
