"""Values to one line of ASCII JSON, with the encoder in C and without it; which values are equal."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compact_json import compact_encoder, json_equal, json_key
from tests.examples import examples

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@pytest.fixture(params=["in C", "in Python"])
def accelerated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr("json.encoder.c_make_encoder", None)


@examples(50)
@given(value=VALUES, sort_keys=st.booleans())
def test_a_value_is_written_as_the_module_json_writes_it(value: Any, sort_keys: bool) -> None:
    expected = json.dumps(value, separators=(",", ":"), sort_keys=sort_keys)
    assert expected == compact_encoder(sort_keys=sort_keys)(value)


@pytest.mark.usefixtures("accelerated")
def test_text_tuples_and_what_json_has_no_word_for() -> None:
    assert '"\\u00e9\\ud800"' == compact_encoder()("é\ud800")
    assert '[1,"2j"]' == compact_encoder(default=str)((1, 2j))
    with pytest.raises(TypeError, match="complex is not JSON serializable"):
        compact_encoder()([2j])


@pytest.mark.usefixtures("accelerated")
def test_a_number_that_json_does_not_have_is_refused_unless_allowed() -> None:
    assert "[NaN]" == compact_encoder(allow_nan=True)([math.nan])
    with pytest.raises(ValueError, match="not JSON compliant"):
        compact_encoder()([math.nan])


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        (None, None, True),
        ("1", 1, False),
        ({}, [], False),
        ([1, {"a": None}], [1.0, {"a": None}], True),
        ({"a": 1, "b": [True]}, {"b": [True], "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
    ],
)
def test_values_are_equal_as_json_has_it(one: Any, other: Any, equal: bool) -> None:
    assert equal == json_equal(one, other) == json_equal(other, one) == (json_key(one) == json_key(other))
