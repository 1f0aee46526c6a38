"""Parameters are put in as data: whatever a value is, it adds no expression."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.templates.placeholders import PlaceholderError, fill_template, fill_value, placeholders
from pytest_lmeval.templates.template import compile_template
from tests.tables import each_row

_HOSTILE = st.text() | st.sampled_from(
    [
        *('x" ~ sample.secret ~ "', "{{ sample.secret }}", "{% raw %}"),
        *("{% endraw %}", "\\", "'", "}}", "<< config.y >>", "\n"),
    ]
)


# Jinja's own, which are names to Python's isidentifier; a random text is one of them now and then.
_WORDS = "and else false for if in is none not or true False None True".split()  # noqa: SIM905  # a word a line would hide the list


def _filled(source: str, **values: Any) -> str:
    return compile_template(fill_template(source, values)).render({"sample": {"secret": "s3cret", "first": "a"}})


@settings(deadline=None)
@given(_HOSTILE)
def test_in_text_a_value_is_text(value: str) -> None:
    assert f"[{value}] a" == _filled("[<< config.x >>] {{ sample.first }}", x=value)


@settings(deadline=None)
@given(_HOSTILE, st.sampled_from("'\""))
def test_in_a_string_of_an_expression_a_value_is_text(value: str, quote: str) -> None:
    assert f"[{value}]" == _filled("[{{ " + quote + "<< config.x >>" + quote + " }}]", x=value)


@settings(deadline=None)
@given(_HOSTILE | st.sampled_from([*_WORDS, "name"]))
def test_bare_in_an_expression_text_is_a_name_or_an_error(value: str) -> None:
    is_name = value.isascii() and value.isidentifier() and not value.startswith("_") and value not in _WORDS
    if is_name:
        assert f"{{{{ sample.{value} }}}}" == fill_template("{{ sample.<< config.x >> }}", {"x": value})
    else:
        with pytest.raises(PlaceholderError, match="is in an expression and is not a name"):
            fill_template("{{ sample.<< config.x >> }}", {"x": value})


@given(
    st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(st.text() | st.integers())
)
@settings(deadline=None)
def test_bare_in_an_expression_other_values_are_themselves(value: Any) -> None:
    template = compile_template(fill_template("{{ << config.x >> }}", {"x": value}))
    read = template.value({})
    assert (type(value), value) == (type(read), read)


def test_the_forms_of_a_task() -> None:
    source = '{{ sample.first if "<< config.which >>" == "first" else "other" }}'
    assert "a" == _filled(source, which="first")
    assert "other" == _filled(source, which="last")
    assert '{"j": "a"}' == _filled('{"j": {{ sample.<< config.column >> | tojson }}}', column="first")
    assert "true 2 [1, 2]" == _filled("<< config.a >> <<config.b>> << config.c>>", a=True, b=2, c=[1, 2])
    assert "xa" == _filled("{# << config.a >> #}x{{ sample.<< config.b >>rst }}", a="#}", b="fi")
    assert "{{ a }}" == _filled("{% raw %}{{ << config.x >> }}{% endraw %}", x="a")


def test_a_value_alone_keeps_its_type() -> None:
    assert [1, "a"] == fill_value(" << config.x >> ", {"x": [1, "a"]})
    assert fill_value("<< config.x >>", {"x": None}) is None
    assert "a 1 b" == fill_value("a << config.x >> b", {"x": 1})
    assert json.dumps(["ü"], ensure_ascii=False) == fill_value("<< config.x >>!", {"x": ["ü"]})[:-1]
    assert "a << b >> c" == fill_value("a << b >> c", {})


@each_row(
    ("text", "values", "message"),
    [
        ("<< config.which >>", {"with": 1}, "unknown parameter 'which'; did you mean 'with'?"),
        ("<< config.zzz >>", {"a": 1, "b": 2}, "unknown parameter 'zzz'; config_spec has a, b"),
        ("<< config.zzz >>", {}, "config_spec has none"),
        ("<< config.x", {"x": 1}, "'<< config.x' is not closed"),
        ("<< config >>", {"x": 1}, "is not closed, or has no key"),
        ("<< config.a.b >>", {"a": 1}, "is not closed, or has no key"),
        ("a << config.x >>", {"x": None}, "has no value, but is part of a text"),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_an_error(text: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(PlaceholderError) as caught:
        fill_value(text, values)
    assert message in str(caught.value)
    with pytest.raises(PlaceholderError):
        fill_template(text, values)


def test_a_template_that_breaks_off_says_so() -> None:
    with pytest.raises(PlaceholderError, match="line 1 of the template"):
        fill_template("{{ << config.x >> ) }}", {"x": 1})
    with pytest.raises(PlaceholderError, match="is not valid in a raw block"):
        fill_template("{% raw %}<< config.x >>{% endraw %}", {"x": "{% endraw %}{{ 1 }}"})
    assert ["a", "b"] == placeholders("<< config.a >> {{ << config.b >> }}")
