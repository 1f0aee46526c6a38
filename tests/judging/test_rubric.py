"""A rubric and its levels, and what of a judge's reply is read as a grade."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.judging.rubric import Rubric
from pytest_lmeval.judging.verdicts import level_of, one_of_with_reason
from pytest_lmeval.loading import validate_task
from tests.tables import each_row

GRADES = [
    ('{"reason": "so", "score": 1}', (1.0, "so")),
    ('{"score": 0.5}', (0.5, "")),
    ('{"reason": " so ", "score": "0.5"}', (0.5, "so")),
    ('```json\n{"reason": "so", "score": 0}\n```', (0.0, "so")),
    ('```\n{"reason": "so", "score": 0.0}\n```\n', (0.0, "so")),
    ('  {"reason": "so", "score": 1, "more": [1]}  ', (1.0, "so")),
    # Unambiguous, though no plain JSON.
    ('```JSON5\n{"reason": "so", "score": 1}\n```', (1.0, "so")),
    ('```json {"reason": "so", "score": 1}```', (1.0, "so")),
    ('```{"reason": "so", "score": 1}```', (1.0, "so")),
    ('```json\r\n{"reason": "so", "score": 1}\r\n```', (1.0, "so")),
    ('````\n{"reason": "so", "score": 1}\n````', (1.0, "so")),
    ('\ufeff{"reason": "so", "score": 1}', (1.0, "so")),
    ('{"reason": "one\ntwo\tthree", "score": 1}', (1.0, "one\ntwo\tthree")),
    (r'{"reason": "it\'s so", "score": 1}', (1.0, "it's so")),
    ('{"reason": null, "score": 1}', (1.0, "")),
    ('{"reason": ["one.", "two."], "score": 1}', (1.0, "one. two.")),
    ('Here it is:\n```json\n{"reason": "so", "score": 1}\n```\nThat is all.', (1.0, "so")),
    ('{"reason": "say ```python\\nx\\n``` there", "score": 1}', (1.0, "say ```python\nx\n``` there")),
    # Two candidates, or none.
    ('Not {"score": 0} but:\n```json\n{"reason": "so", "score": 1}\n```', None),
    ('First:\n```json\n{"score": 0}\n```\nThen:\n```json\n{"score": 1}\n```', None),
    ('````\n{"reason": "so", "score": 1}\n```', None),
    ('{"reason": ["one", 2], "score": 1}', None),
    ('{"score": 1' + "0" * 400 + "}", None),
    ("1", None),
    ("", None),
    ('{"reason": "so"}', None),
    ('{"reason": "so", "score": 0.7}', None),
    ('{"reason": "so", "score": true}', None),
    ('{"reason": "so", "score": "high"}', None),
    ('{"reason": 1, "score": 1}', None),
    ('{"reason": "so", "score": 0, "score": 1}', None),
    ('{"reason": "so", "score": 1} I am sure.', None),
    ('The answer was {"reason": "so", "score": 1}', None),
    ('{"reason": "so", "score": 1}\n{"reason": "so", "score": 0}', None),
    ('```json\n{"score": 0}\n```\n```json\n{"score": 1}\n```', None),
    ('[{"reason": "so", "score": 1}]', None),
    ('{"score": NaN}', None),
    ('{"a":' * 100_000, None),
]


@each_row(("reply", "expected"), GRADES)
def test_a_grade_is_all_of_a_reply_as_one_object(reply: str, expected: tuple[float, str] | None) -> None:
    assert expected == level_of(Rubric.of("Good?", {"0": "wrong", "0.5": "incomplete", "1": "right"})).read(reply)


def test_a_label_with_a_reason_is_read_likewise() -> None:
    replies = ('{"reason": "so", "label": "Yes."}', '{"reason": "so", "label": "maybe"}', "yes")
    assert [("yes", "so"), None, None] == [one_of_with_reason(("yes", "no")).read(reply) for reply in replies]


LEVELS: list[tuple[Any, str]] = [
    ({"1": "right", "0": "wrong"}, "extras.levels: expected increasing numbers, got 0 after 1"),
    ({"0": "wrong", "0.0": "also"}, "extras.levels: expected increasing numbers, got 0 after 0"),
    ({"1": "right"}, "extras.levels: expected an object of 2 to 100 levels"),
    (["0", "1"], "extras.levels: expected an object of 2 to 100 levels"),
    ({"0": "wrong", "2": "right"}, "extras.levels: expected numbers from 0 to 1, got '2'"),
    ({"0": "wrong", "nan": "right"}, "extras.levels: expected numbers from 0 to 1, got 'nan'"),
    ({"0": "wrong", "1": " "}, "extras.levels.1: expected a text with its meaning, got ' '"),
    ({"0": "wrong", "1": 1}, "extras.levels.1: expected a text with its meaning, got 1"),
]


@each_row(("levels", "says"), LEVELS)
def test_levels_out_of_order_or_without_a_meaning_are_refused(levels: Any, says: str) -> None:
    with pytest.raises(RecordRefused, match=says.replace("[", r"\[").replace(".", r"\.")):
        Rubric.of("Good?", levels)


RECORDS: list[tuple[dict[str, Any], str]] = [
    ({}, "bad_value extras.rubric: expected a text with the criteria, got None"),
    ({"rubric": " "}, "bad_value extras.rubric: expected a text with the criteria"),
    (
        {"rubric": "Good?", "level": {}},
        "unknown_field extras.level: nothing reads the key 'level'; did you mean 'levels'?",
    ),
    ({"rubric": "Good?", "human_label": 0.5}, "bad_value extras.human_label: expected one of the levels, got 0.5"),
    ({"rubric": "Good?", "not": 1}, "bad_type extras.not: expected true or false, got a number"),
]


@each_row(("extras", "says"), RECORDS)
def test_a_record_whose_rubric_no_judge_could_use_is_bad(extras: dict[str, Any], says: str) -> None:
    with pytest.raises(RecordRefused) as refused:
        validate_task({"prompt": "Hi", "metric": "rubric", "extras": extras})
    assert str(refused.value).startswith(says)


def test_a_turn_refuses_a_rubric() -> None:
    turn = {"user": "Hi", "metric": "rubric", "extras": {"rubric": "Good?"}}
    with pytest.raises(RecordRefused, match="rubric asks a judge, which a turn cannot"):
        validate_task({"turns": [turn]})
