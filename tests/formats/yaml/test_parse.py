"""YAML as it is read here: data and places, and nothing that surprises."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.formats.yaml.document import Includer, Location, YamlDocument, YamlFault, field_name
from pytest_lmeval.formats.yaml.parse import parse_yaml
from tests.tables import each_row

# JSON writes what lies beyond as two halves, which YAML does not put together.
_TEXT = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF), max_size=12)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


def _fault(text: str | bytes) -> YamlFault:
    with pytest.raises(YamlFault) as caught:
        parse_yaml(text.encode() if isinstance(text, str) else text)
    return caught.value


@given(_VALUES)
def test_what_another_writer_wrote_is_read_back(value: Any) -> None:
    # JSON is YAML; what may stand without quotes is decided differently here than by any writer of YAML.
    assert value == parse_yaml(json.dumps(value).encode())


def test_every_key_and_element_has_its_place() -> None:
    document = parse_yaml(b"a: 1\nb:\n  - x: no\n    y: [1, {z: 2}]\n")
    assert isinstance(document, YamlDocument)
    assert {"a": 1, "b": [{"x": "no", "y": [1, {"z": 2}]}]} == document
    assert Location(4, 5) == document.place(("b", 0, "y"))
    assert Location(4, 13) == document.place(("b", 0, "y", 1, "z"))
    assert Location(3, 5) == document.place(("b", 0, "not there"))
    assert "b[0].y[1].z" == field_name(("b", 0, "y", 1, "z"))


@each_row(
    ("text", "place", "message"),
    [
        ("a: 1\nb: 2\na: 3", (3, 1), "the key 'a' is already on line 1"),
        ("a:\n\tb: 1", (2, 1), "indent with blanks, not tabs"),
        ("a: !!python/object/apply:os.system [ls]", (1, 4), "the tag !!python/object/apply:os.system is not supported"),
        ("a: !!python/name:os.system", (1, 4), "is not supported; only !include is"),
        ("a: !env HOME", (1, 4), "the tag !env is not supported"),
        ("a: !!binary aGk=", (1, 4), "the tag !!binary is not supported"),
        ("a: &x [*x]", (1, 8), "names no value that ends before it"),
        ("a: *nowhere", (1, 4), "the alias \\*nowhere names no value"),
        ("<<: {a: 1}", (1, 1), "merge keys"),
        ("1: x", (1, 1), "the key 1 is not text"),
        ("? [a]\n: b", (1, 3), "a key must be text"),
        ("a: 010", (1, 4), "octal"),
        ("a: .nan", (1, 4), "not a finite number"),
        ("a: 1\n---\nb: 2", (2, 1), "a second document"),
        ("a: 'x\nb", (2, 2), "unexpected end"),
        ("[" * 60, (1, 52), "nested deeper than 50"),
        ('a: "\\ud800"', (1, 4), "half of a character"),
        ("a: x\x07", (1, 1), "U\\+0007 is not allowed"),
    ],
)
def test_what_is_refused_says_where_and_why(text: str, place: tuple[int, int], message: str) -> None:
    fault = _fault(text)
    assert place == fault.place
    assert re.search(message, fault.detail), fault.detail


@each_row(
    ("line", "quoted"),
    [
        ("expression: {{ scores.labeller.label }}", "'{{ scores.labeller.label }}'"),
        ("ground_truth: {{ sample['a'] }}", "'{{ sample[''a''] }}'"),
        ("ground_truth: {% if sample.a %}b{% endif %}", "'{% if sample.a %}b{% endif %}'"),
        ("- {{ sample.a | tojson }}", "'{{ sample.a | tojson }}'"),
    ],
)
def test_a_template_without_quotes_is_told_what_to_quote(line: str, quoted: str) -> None:
    fault = _fault(f"a: 1\nb:\n{line if line.startswith('-') else '  ' + line}")
    assert 3 == fault.place.line
    assert fault.detail.endswith(f"quote a template that starts a value: {quoted}")
    assert parse_yaml(f"a: {quoted}".encode())["a"].startswith("{")


def test_aliases_in_moderation_are_read() -> None:
    assert {"a": ["x"], "b": [["x"], ["x"]]} == parse_yaml(b"a: &a [x]\nb: [*a, *a]")


def test_a_file_is_utf_8_of_bearable_size() -> None:
    assert "not UTF-8: byte 0xff" == _fault(b"a: 1\nb: \xff").detail
    assert 2 == _fault(b"a: 1\nb: \xff").place.line
    assert "a YAML file may have at most 262,144" in _fault(b"a: " + b"x" * 300_000).detail
    assert {"a": "ü"} == parse_yaml(b"\xef\xbb\xbfa: \xc3\xbc\r\n")


def test_a_long_file_is_read() -> None:
    text = "".join(f"k{number}: [a, {{b: 'c'}}]\n" for number in range(1000))
    assert 1000 == len(parse_yaml(text.encode()))


# --- include ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks" / "deep").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("secret")
    (tmp_path / "tasks" / "score.py").write_bytes(b"def f():\r\n    pass\r\n")
    (tmp_path / "tasks" / "deep" / "a.txt").write_text("deep")
    (tmp_path / "tasks" / "link.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "tasks" / "bytes.py").write_bytes(b"\xff")
    (tmp_path / "tasks" / "big.py").write_bytes(b"x" * 300_000)
    (tmp_path / "tasks" / "other.yaml").write_text("a: 1")
    return tmp_path / "tasks"


def test_an_included_file_stands_in_as_text(folder: Path) -> None:
    text = b"a: !include score.py\nb: ['x', !include './deep/a.txt']\n"
    document = parse_yaml(text, Includer(folder / "task.yaml"))
    assert {"a": "def f():\n    pass\n", "b": ["x", "deep"]} == document
    assert {("a",): "score.py", ("b", 1): "a.txt"} == {key: each.path.name for key, each in document.includes.items()}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../outside.py", "outside of the folder"),
        ("/etc/hostname", "outside of the folder"),
        ("link.py", "outside of the folder"),
        ("deep/../../outside.py", "outside of the folder"),
        ("task.yaml", "the file includes itself"),
        ("./deep/../task.yaml", "the file includes itself"),
        ("other.yaml", "only text is included"),
        ("missing.py", "cannot be read: No such file"),
        ("deep", "cannot be read: Is a directory"),
        ("bytes.py", "not UTF-8"),
        ("big.py", "more than 262,144 bytes"),
        ("''", "expects the name of a file"),
    ],
)
def test_what_may_not_be_included_is_named(folder: Path, name: str, message: str) -> None:
    with pytest.raises(YamlFault, match=message) as caught:
        parse_yaml(f"x: 1\ny: !include {name}".encode(), Includer(folder / "task.yaml"))
    assert Location(2, 4) == caught.value.place


def test_without_a_folder_nothing_is_included() -> None:
    assert "nothing can be included here" == _fault("a: !include score.py").detail
    assert "the tag !include is not supported; only !include is" == _fault("a: !include [score.py]").detail
