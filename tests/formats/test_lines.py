"""A file is bytes: lines end at a line feed alone, and a line that is not JSON spoils only itself."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_lmeval.data.lines import MAX_DEPTH, MAX_LINE_BYTES, number_lines, parse_line
from pytest_lmeval.errors import RecordRefused
from tests.tables import each_row

BOM = b"\xef\xbb\xbf"
MIB = 1024 * 1024

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


def _refusal(line: bytes, max_bytes: int = MAX_LINE_BYTES) -> RecordRefused:
    with pytest.raises(RecordRefused) as caught:
        parse_line(line, max_bytes)
    return caught.value


def _parse(line: bytes) -> Any:
    """Return the value of any line, or why it has none; nothing but ``bad_json`` may be the reason."""
    try:
        return parse_line(line)
    except RecordRefused as refused:
        if ("bad_json", "_line") != (refused.rule, refused.field) or not refused.detail:
            raise
        return refused


# Lines


def test_a_byte_order_mark_elsewhere_is_bad() -> None:
    lines = [line for _, line in number_lines(b"1\n" + BOM + b"2\n3")]
    assert [b"1", BOM + b"2", b"3"] == lines
    assert "bad_json" == _refusal(lines[1]).rule


@each_row("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    line = f'{{"a": "b{separator}c"}}'.encode()
    assert [(1, line)] == list(number_lines(line))


@settings(deadline=None)
@given(st.binary() | st.lists(st.sampled_from([b"\n", b"\r", b" ", b"#", b"1", b"\t", BOM, b'"'])).map(b"".join))
@example(b"\n#\r\n\r 1 \r\n")
@example(BOM + b"# comment\n1\n  # x\n2")
def test_every_line_is_given_or_is_blank_or_a_comment(data: bytes) -> None:
    lines = [line.strip(b" \t\r") for line in data.removeprefix(BOM).split(b"\n")]
    assert [(n, line) for n, line in enumerate(lines, 1) if line[:1] not in (b"", b"#")] == list(number_lines(data))


# JSON


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_a_value_or_bad_json(line: bytes) -> None:
    value = _parse(line)
    assert isinstance(value, RecordRefused) or json.loads(line) == value


@settings(deadline=None)
@given(_JSON, st.booleans())
def test_every_strict_json_value_is_read_as_it_was_written(value: Any, ascii_only: bool) -> None:
    assert value == parse_line(json.dumps(value, ensure_ascii=ascii_only).encode())


@settings(deadline=None)
@given(_JSON, st.data())
def test_a_line_with_one_byte_changed_never_crashes(value: Any, data: st.DataObject) -> None:
    line = bytearray(json.dumps(value).encode())
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] = data.draw(st.integers(0, 255))
    _parse(bytes(line))


@each_row(
    ("line", "reason"),
    [
        (b"", "Expecting value"),
        (b"{", "column 2"),
        (b"{} {}", "Extra data"),
        (b"{'a': 1}", "double quotes"),
        (b"[1,]", "column"),
        (b'"a\x01b"', "control character"),
        (b'"\\x41"', "escape"),
        (b'"abc\xff"', "not UTF-8: byte 0xff at column 5"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b'"\xc0\xaf"', "not UTF-8"),
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b"1e999", "1e999 is too large"),
        (b"[-1e999]", "-1e999 is too large"),
        (b'{"a": 1, "b": 2, "a": 1}', "duplicate key 'a'"),
        (b'{"x": {"a": 1, "\\u0061": 2}}', "duplicate key 'a'"),
        (b'"\\ud800"', "lone surrogate \\ud800"),
        (b'"\\uDFFF"', "lone surrogate \\udfff"),
        (b'{"\\ud83d": 1}', "lone surrogate \\ud83d"),
        (b'"\\ude00\\ud83d"', "lone surrogate"),
        (b"9" * 5000, "digits"),
        (b"0x1F", "column"),
        (b"01", "Extra data"),
    ],
)
def test_what_is_not_strict_json_says_why(line: bytes, reason: str) -> None:
    refused = _refusal(line)
    assert ("bad_json", "_line") == (refused.rule, refused.field)
    assert reason in refused.detail


@each_row(
    ("line", "value"),
    [
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
        (b"-0.0", -0.0),
        (b'{"a": {"a": 1}}', {"a": {"a": 1}}),
        (b'{"a": 1, "A": 2}', {"a": 1, "A": 2}),
        (b'"NaN"', "NaN"),
        (b'"\\u0000"', "\0"),
    ],
)
def test_what_looks_odd_but_is_strict_json_is_read(line: bytes, value: Any) -> None:
    assert value == parse_line(line)


def test_a_line_of_one_mebibyte_is_read_and_one_byte_more_is_not() -> None:
    assert MIB == MAX_LINE_BYTES
    text = "a" * (MIB - 2)
    assert text == parse_line(f'"{text}"'.encode())
    refused = _refusal(f'"{text}a"'.encode())
    assert ("bad_json", "_line") == (refused.rule, refused.field)
    assert "1,048,577 bytes; at most 1,048,576" in refused.detail


def test_the_limit_counts_bytes_and_may_be_set() -> None:
    assert "éé" == parse_line('"éé"'.encode(), 6)
    assert "6 bytes; at most 5" in _refusal('"éé"'.encode(), 5).detail


def test_a_line_over_the_limit_is_refused_whatever_it_holds() -> None:
    assert "at most 3" in _refusal(b"\xff\xff\xff\xff", 3).detail


def _arrays(depth: int, core: str = "") -> str:
    return "[" * depth + core + "]" * depth


def _objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def _mixed(depth: int) -> str:
    text = "1"
    for level in range(depth):
        text = f"[{text}]" if level % 2 else f'{{"a": {text}}}'
    return text


@each_row("nested", [_arrays, _objects, _mixed])
def test_a_hundred_levels_are_read_and_one_more_is_not(nested: Any) -> None:
    assert 100 == MAX_DEPTH
    assert json.loads(nested(100)) == parse_line(nested(100).encode())
    assert "nested deeper than 100 levels" == _refusal(nested(101).encode()).detail


@each_row("text", ["[" * 300, '\\"[{' * 100, "\\\\", '\\\\\\"' + "[" * 200])
def test_brackets_in_a_string_nest_nothing(text: str) -> None:
    line = _arrays(100, f'"{text}"')
    assert json.loads(line) == parse_line(line.encode())
    assert "nested deeper" in _refusal(_arrays(101, f'"{text}"').encode()).detail


def test_many_shallow_brackets_nest_nothing() -> None:
    assert [[], {}] * 200 == parse_line(json.dumps([[], {}] * 200).encode())


@pytest.mark.parametrize("line", [b"[" * MIB, b'{"a":' * (MIB // 5), b'"' + b"[" * (MIB - 1)])
def test_a_line_of_nothing_but_nesting_is_bad_json(line: bytes) -> None:
    assert "bad_json" == _refusal(line).rule


_REPEATED_KEY = """
import resource
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.data.lines import parse_line

resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
keys = [f'"{number}":1' for number in range(100_000)]
try:
    parse_line(f"{{{','.join(keys)},{keys[-1]}}}".encode())
except RecordRefused as refused:
    print(refused)
"""


def test_a_repeated_key_is_found_among_many_without_a_search_for_each() -> None:
    # A search for each key takes minutes of CPU for one hostile line; the limit is some hundred times what is needed.
    done = subprocess.run([sys.executable, "-c", _REPEATED_KEY], capture_output=True, text=True, check=False)
    assert ("bad_json _line: duplicate key '99999'\n", "", 0) == (done.stdout, done.stderr, done.returncode)
