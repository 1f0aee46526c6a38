"""Where in an output a prediction was read."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.postprocess import RULES, extract
from pytest_lmeval.report.html.examples import extracted_span
from tests.tables import each_row


def _marked(rule: str, output: str, prediction: str | None = None) -> str | None:
    span = extracted_span(rule, output, extract(rule, output).text if prediction is None else prediction)
    if span is None:
        return None
    units = output.encode("utf-16-le", "surrogatepass")
    before, inside, after = units[: span[0] * 2], units[span[0] * 2 : span[1] * 2], units[span[1] * 2 :]
    return "[".join([before.decode("utf-16-le"), f"{inside.decode('utf-16-le')}]{after.decode('utf-16-le')}"])


@each_row(
    ("rule", "output", "marked"),
    [
        ("extract_letter", "Definitely (C), not D. C!", "Definitely ([C]), not D. C!"),
        ("extract_letter", "Can't say, A", "Can't say, [A]"),
        ("extract_letter", "aBc", "a[B]c"),
        ("extract_answer", "A: 3\nso 3 and 3\nA: 3", "A: 3\nso 3 and 3\nA: [3]"),
        ("extract_answer", "1,234 it is\n#### 1,234 ", "1,234 it is\n#### [1,234] "),
        ("extract_answer", f"{',' * 60}x\nA: {',' * 70}", f"{',' * 60}x\nA: [{',' * 70}]"),
        ("extract_first_line", "\n  one \none", "\n  [one] \none"),
        ("extract_code_block", "x\n```py\nx\n```\nx", "x\n```py\n[x]\n```\nx"),
        ("extract_letter", "\U0001f600 it is B", "\U0001f600 it is [B]"),
    ],
)
def test_what_the_rule_read_is_marked(rule: str, output: str, marked: str) -> None:
    assert marked == _marked(rule, output)


@each_row(
    ("rule", "output"),
    [
        ("none", "a"),
        ("strip_whitespace", " a\n"),
        ("extract_letter", "xyz"),
        ("extract_letter", " A "),
        ("lower", "AB"),
    ],
)
def test_nothing_is_marked_where_all_of_it_or_nothing_was_read(rule: str, output: str) -> None:
    assert None is _marked(rule, output)


def test_of_a_rule_from_elsewhere_the_only_place_is_marked() -> None:
    assert "the answer: [42]." == _marked("last_number", "the answer: 42.", "42")
    assert None is _marked("last_number", "42 or 42", "42")


@given(rule=st.sampled_from(sorted(RULES)), output=st.text(alphabet="ABx1, \n`#:\U0001f600", max_size=40))
def test_a_marked_place_always_holds_the_prediction(rule: str, output: str) -> None:
    prediction = extract(rule, output).text
    span = extracted_span(rule, output, prediction)
    if span is not None:
        units = output.encode("utf-16-le")[span[0] * 2 : span[1] * 2].decode("utf-16-le")
        assert prediction == (re.sub("(?<=1),(?=1)", "", units) if rule == "extract_answer" else units)
