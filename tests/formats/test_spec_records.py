"""The strict dialect: its vocabulary, its rules by name, and the order in which they are checked."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_lmeval import RecordRefused, default_registry, validate_file
from pytest_lmeval.formats import spec
from pytest_lmeval.formats.jsonl import read_records
from pytest_lmeval.formats.spec import check_spec_record
from pytest_lmeval.types import Example, FewShot
from tests.formats.test_task_files import SPEC
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data"
Record = dict[str, Any]

# The contract, written out once more: a change of the code alone must not pass.
VOCABULARY = {
    "arithmetic": (["exact_match", "f1"], ["none", "strip_whitespace", "lower", "extract_first_line"]),
    "mcq": (["exact_match"], ["none", "strip_whitespace", "extract_letter"]),
    "code_exec": (["code_exec"], ["none", "strip_whitespace", "extract_code_block"]),
    "classification": (
        ["exact_match", "accuracy", "f1"],
        ["none", "strip_whitespace", "lower", "extract_letter", "extract_first_line"],
    ),
    "summary": (
        ["exact_match", "f1", "bleu_4", "rouge_l"],
        ["none", "strip_whitespace", "lower", "extract_first_line"],
    ),
}
METRICS = ["accuracy", "bleu_4", "code_exec", "exact_match", "f1", "rouge_l"]
RULES = ["extract_code_block", "extract_first_line", "extract_letter", "lower", "none", "strip_whitespace"]


def _record(**changes: Any) -> Record:
    return {**SPEC, **changes}


def _refusal(record: object) -> RecordRefused:
    with pytest.raises(RecordRefused) as caught:
        check_spec_record(record, 1)
    return caught.value


def _checked(record: object) -> Example | RecordRefused:
    try:
        return check_spec_record(record, 3)
    except RecordRefused as refused:
        return refused


def _fault(record: object) -> tuple[str, str]:
    refused = _refusal(record)
    return refused.rule, refused.field


# Whole files


def test_a_file_of_bad_records_breaks_every_rule_and_the_valid_records_between_them_are_kept() -> None:
    examples, errors = validate_file(DATA / "bad_spec.jsonl")
    assert [("taken", 3), ("deep_enough", 18), ("nine_shots", 99)] == [(each.id, each.line) for each in examples]
    rules = (
        "bad_json bad_type bad_value duplicate_task_id embedded_few_shot illegal_pair missing_required unknown_field"
    )
    assert rules.split() == sorted({error.rule for error in errors})


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.text() | st.none() | st.integers() | st.lists(st.text())))
@example({"a\r\nb": 1})
@example({"a\u2028b": 1})
@example({"a\x1b[2Jb": 1})
def test_an_error_is_one_printable_line_whatever_the_record_holds(fields: Record) -> None:
    line = json.dumps(_record(**fields)).encode()
    errors = read_records(line, default_registry(entry_points=False)).errors
    assert all(error.at("a.jsonl").isprintable() for error in errors)


# Vocabulary


def test_the_vocabulary_is_the_documented_one() -> None:
    assert 1 == spec.SPEC_VERSION
    assert METRICS == sorted(spec.METRICS)
    assert RULES == sorted(spec.POST_PROCESS)
    assert {name: (set(metrics), set(rules)) for name, (metrics, rules) in VOCABULARY.items()} == {
        name: (set(category.metrics), set(category.post_process)) for name, category in spec.CATEGORIES.items()
    }


@each_row("category", VOCABULARY)
def test_a_category_takes_its_own_pairs_and_no_others(category: str) -> None:
    metrics, rules = VOCABULARY[category]
    target = {"mcq": "B", "code_exec": "f(1) == 2"}.get(category, "5")
    for metric, rule in itertools.product(METRICS, RULES):
        record = _record(category=category, metric_name=metric, post_process=rule, targets=[target])
        if metric not in metrics:
            assert ("illegal_pair", "metric_name") == _fault(record)
        elif rule not in rules:
            assert ("illegal_pair", "post_process") == _fault(record)
        else:
            example = check_spec_record(record, 1)
            assert (category, metric, rule) == (example.category, example.metric, example.post_process)


def test_an_illegal_pair_names_the_choices() -> None:
    refused = _refusal(_record(category="mcq", targets=["B"], metric_name="f1"))
    assert "category 'mcq' allows exact_match; got 'f1'" == refused.detail


def test_a_word_near_one_of_the_vocabulary_is_suggested() -> None:
    assert "did you mean 'exact_match'?" in _refusal(_record(metric_name="exact_mach")).detail
    assert "did you mean 'few_shot_examples'?" in _refusal(_record(few_shots_examples=[])).detail


# Fields


def test_a_record_becomes_a_frozen_example() -> None:
    record = _record(few_shot_examples=[{"prompt": "1 + 1 =", "completion": "2"}], metadata={"level": 1})
    example = check_spec_record(record, 7)
    assert ("a", "2 + 3 =", ("5",), 7) == (example.id, example.prompt, example.targets, example.line)
    assert (FewShot("1 + 1 =", "2"),) == example.few_shot_examples
    assert {"level": 1} == example.metadata
    with pytest.raises(AttributeError):
        example.id = "b"  # type: ignore[misc]


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z0-9_-]+", fullmatch=True))
def test_an_id_of_the_allowed_characters_is_kept(task_id: str) -> None:
    assert task_id == check_spec_record(_record(task_id=task_id), 1).id


_OTHER = st.characters(exclude_characters="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@settings(deadline=None)
@given(st.text("ab-_9"), _OTHER, st.text("ab-_9"))
def test_an_id_with_any_other_character_is_a_bad_value(before: str, char: str, after: str) -> None:
    assert ("bad_value", "task_id") == _fault(_record(task_id=before + char + after))


@each_row("end", [" ", "\n", "\t", "\r\n", "\u00a0", "\u2028"])
def test_a_prompt_ending_in_whitespace_is_a_bad_value(end: str) -> None:
    assert ("bad_value", "prompt") == _fault(_record(prompt="2 + 3 =" + end))


@each_row(
    ("field", "given", "kept"),
    [
        ("prompt", " \n2 + 3 =", " \n2 + 3 ="),
        ("targets", [""], ("",)),
        ("few_shot_examples", [], ()),
        ("few_shot_examples", [{"prompt": "", "completion": ""}] * 8, (FewShot("", ""),) * 8),
        *(("metadata", {"threshold": each}, {"threshold": each}) for each in (0, 1, 0.5, 1.0)),
        *(("metadata", {"timeout_s": each}, {"timeout_s": each}) for each in (0.001, 3, 30)),
    ],
)
def test_a_value_at_the_edge_of_what_is_allowed_is_kept(field: str, given: object, kept: object) -> None:
    assert kept == getattr(check_spec_record(_record(**{field: given}), 1), field)


def test_nine_few_shot_examples_are_too_many() -> None:
    assert ("bad_value", "few_shot_examples") == _fault(_record(few_shot_examples=[{}] * 9))


@each_row(
    ("key", "value", "rule"),
    [
        ("threshold", 1.0001, "bad_value"),
        ("threshold", -1, "bad_value"),
        ("threshold", True, "bad_type"),
        ("threshold", "1", "bad_type"),
        ("threshold", None, "bad_type"),
        ("timeout_s", 0, "bad_value"),
        ("timeout_s", -1, "bad_value"),
        ("timeout_s", 30.5, "bad_value"),
        ("timeout_s", True, "bad_type"),
        ("timeout_s", "3", "bad_type"),
    ],
)
def test_metadata_that_decides_the_score_is_checked(key: str, value: object, rule: str) -> None:
    record = _record(category="code_exec", metric_name="code_exec", targets=["f() == 1"], metadata={key: value})
    assert (rule, f"metadata.{key}") == _fault(record)


@each_row("letter", "ABCDE")
def test_an_mcq_target_is_one_letter(letter: str) -> None:
    assert (letter,) == check_spec_record(_record(category="mcq", targets=[letter]), 1).targets


@each_row("target", ["def f(): pass", "f(", "", "x = 1", "return 1", "f()\ng()", "f(\0)"])
def test_a_code_target_is_a_python_expression(target: str) -> None:
    record = _record(category="code_exec", metric_name="code_exec", targets=["f() == 1", target])
    assert ("bad_value", "targets") == _fault(record)


# Embedded few-shot blocks


@each_row(
    "prompt",
    [
        "Question: a\nQuestion: b",
        "q: a q: b",
        "Q: a\nExample: b",
        "EXAMPLE:QUESTION:",
        "(q:) and [example:]",
        "1q: a 2q: b",
        "_q: a -q: b",
        "a\nquestion: b\nqUeStIoN: c",
        "Example question: a example: b",
    ],
)
def test_a_prompt_with_two_markers_is_refused(prompt: str) -> None:
    assert ("embedded_few_shot", "prompt") == _fault(_record(prompt=prompt))
    shots = [{"prompt": "a", "completion": "b"}]
    assert ("embedded_few_shot", "prompt") == _fault(_record(prompt=prompt, few_shot_examples=shots))


@each_row(
    "prompt",
    [
        "Question: a",
        "FAQ: a. Question: b",
        "faq: a BBQ: b éq: c",
        "Question : a Question : b",
        "Questions: a Examples: b",
        "subexample: a counterexample: b q: c",
        "example question: a",
        "Answer: a\nAnswer: b",
    ],
)
def test_a_prompt_with_one_marker_is_taken(prompt: str) -> None:
    assert prompt == check_spec_record(_record(prompt=prompt), 1).prompt


# The order of the checks: each fault is put in by one change, and comes before those below it.

_SHOT = {"prompt": "a", "completion": 1}
FAULTS: list[tuple[str, str, Record]] = [
    ("missing_required", "prompt", {"prompt": ...}),
    ("unknown_field", "colour", {"colour": "red"}),
    ("bad_value", "task_id", {"task_id": "a b"}),
    ("bad_value", "category", {"category": "maths"}),
    ("bad_type", "prompt", {"prompt": 5}),
    ("bad_type", "targets", {"targets": []}),
    ("bad_value", "metric_name", {"metric_name": "em"}),
    ("bad_type", "post_process", {"post_process": None}),
    ("bad_type", "few_shot_examples", {"few_shot_examples": [_SHOT]}),
    ("bad_value", "metadata.threshold", {"metadata": {"threshold": 2}}),
    ("illegal_pair", "metric_name", {"metric_name": "code_exec"}),
    ("illegal_pair", "post_process", {"post_process": "extract_code_block"}),
    ("bad_value", "targets", {"targets": ["wren"]}),
    ("embedded_few_shot", "prompt", {"prompt": "q: a q: b"}),
]


def _faulty(numbers: Iterable[int]) -> Record:
    record = _record(category="mcq", targets=["B"])
    # Two faults of one field shadow each other: what comes first in the order is put in last.
    for number in sorted(numbers, reverse=True):
        record |= FAULTS[number][2]
    return {name: value for name, value in record.items() if value is not ...}


@each_row("first", range(len(FAULTS)))
def test_of_two_faults_the_first_in_the_order_of_the_checks_is_reported(first: int) -> None:
    rule, field, _ = FAULTS[first]
    assert (rule, field) == _fault(_faulty([first]))
    for second in range(first + 1, len(FAULTS)):
        assert (rule, field) == _fault(_faulty([first, second]))


_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys((*spec.REQUIRED, *spec.OPTIONAL), _ANY)), st.booleans())
def test_any_record_is_an_example_or_refused_by_a_known_rule(fields: Record, whole: bool) -> None:
    known = {"bad_type", "bad_value", "missing_required", "unknown_field", "illegal_pair", "embedded_few_shot"}
    record = _record(**fields) if whole else fields
    checked = _checked(record)
    if isinstance(checked, RecordRefused):
        assert checked.rule in known
        assert re.split(r"[.[]", checked.field)[0] in {*spec.REQUIRED, *spec.OPTIONAL}
    else:
        assert 3 == checked.line
