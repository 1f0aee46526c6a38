"""The CSV metrics, against tables that the csv module writes."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.metrics import csv_columns, csv_separator, has_csv
from tests.examples import examples
from tests.tables import each_row

COMMA = "name,age\nAda,36\nGrace,85"
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}


@each_row(
    ("prediction", "extras", "expected"),
    [
        (COMMA, {"separator": "comma", "columns": 2}, (1.0, 1.0, 1.0)),
        (f"Here it is:\n\n{COMMA}\n\nAnything else?", {"separator": ",", "columns": ["name", "age"]}, (1.0, 1.0, 1.0)),
        (COMMA.replace("\n", "\r\n"), {"separator": "comma", "columns": 2}, (1.0, 1.0, 1.0)),
        (COMMA.replace(",", ";"), {"separator": "comma", "columns": 2}, (1.0, 0.0, 1.0)),
        (COMMA.replace(",", "\t"), {"columns": 2}, (1.0, 1.0, 1.0)),
        (COMMA, {"separator": "comma", "columns": 3}, (1.0, 1.0, 0.0)),
        ('a,b\n"x, y",1\n"say ""hi, there""",2', {"columns": 2}, (1.0, 1.0, 1.0)),
        ("one two\nthree four", {"columns": 2}, (0.0, 0.0, 0.0)),
        ("one two\nthree four", {"separator": "space", "columns": 2}, (1.0, 1.0, 1.0)),
        ("a,b;c\nd,e;f", {"separator": "semicolon", "columns": 2}, (1.0, 1.0, 1.0)),
        ("a,b,c\n1,2,3\n4,5,6\n7,8", {"columns": 3}, (1.0, 1.0, 1.0)),
        ("a,b", {"columns": 2}, (0.0, 0.0, 0.0)),
        ("a,b\n1,2,3\nc,d", {"columns": 2}, (0.0, 0.0, 0.0)),
        ("a\nb\nc", {"columns": 1}, (0.0, 0.0, 0.0)),
        ("", {"columns": 2}, (0.0, 0.0, 0.0)),
    ],
)
def test_a_table_is_found_and_measured(prediction: str, extras: dict[str, Any], expected: tuple[float, ...]) -> None:
    assert expected == tuple(metric(prediction, [], extras) for metric in (has_csv, csv_separator, csv_columns))


@examples(200)
@given(
    st.sampled_from(sorted(SEPARATORS)),
    st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.text('ab,; "\t', min_size=1, max_size=5), min_size=width, max_size=width),
            min_size=2,
            max_size=5,
        )
    ),
)
def test_whatever_the_csv_module_writes_is_a_table(name: str, rows: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file, delimiter=SEPARATORS[name], quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    extras = {"separator": name, "columns": len(rows[0])}
    assert [1.0, 1.0, 1.0] == [metric(file.getvalue(), [], extras) for metric in (has_csv, csv_separator, csv_columns)]


@each_row(
    ("extras", "message"),
    [
        ({"separator": "coma"}, "bad_value extras.separator: 'coma' is not one of .* did you mean 'comma'?"),
        ({"separator": ["comma"]}, "bad_value extras.separator"),
        ({"separator": "|"}, "bad_value extras.separator"),
        ({}, "bad_value extras.columns: expected a number or a list of names, got None"),
        ({"columns": True}, "bad_value extras.columns"),
        ({"columns": 0}, "bad_value extras.columns"),
        ({"columns": []}, "bad_value extras.columns"),
    ],
)
def test_extras_that_are_not_understood_are_refused(extras: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordRefused, match=message):
        csv_columns("a,b\n1,2", [], {"columns": 2, **extras} if "separator" in extras else extras)
