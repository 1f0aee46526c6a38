"""Values to one line of ASCII JSON, with the encoder in C and without it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.compact_json import compact_encoder
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
