"""The place in an output that holds the prediction."""

from __future__ import annotations

from pytest_lmeval.report.html.examples import extracted_span
from tests.tables import each_row


@each_row(
    ("output", "prediction", "marked"),
    [
        ("so 3\nA: 4", "4", "so 3\nA: [4]"),
        ("x\n```\ny\n```", "y", "x\n```\n[y]\n```"),
        ("\U0001f600 it is B", "B", "\U0001f600 it is [B]"),
        ("42 or 42", "42", None),
        ("1,234", "1234", None),
        (" a\n", "a", None),
        ("xyz", "", None),
    ],
)
def test_the_only_place_of_the_prediction_is_marked(output: str, prediction: str, marked: str | None) -> None:
    span = extracted_span(output, prediction)
    units = output.encode("utf-16-le")
    parts = span and (units[: span[0] * 2], units[span[0] * 2 : span[1] * 2], units[span[1] * 2 :])
    assert marked == (parts and "{}[{}]{}".format(*(part.decode("utf-16-le") for part in parts)))
