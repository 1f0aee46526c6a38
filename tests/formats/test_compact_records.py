"""The compact dialect: few fields, one metric a file, open to every registered metric and rule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval import Example, RecordRefused, Registry, default_registry, load_tasks, validate_file
from pytest_lmeval.formats.compact import check_compact_record
from pytest_lmeval.formats.jsonl import read_records
from tests import needs
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data"
METRICS = ["exact_match", "substring_contains", "multiple_choice", "rouge_l", "code_exec"]
FIELDS = ["id", "prompt", "targets", "metric", "extras"]
Record = dict[str, Any]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry(entry_points=False)


def _record(**changes: Any) -> Record:
    return {"prompt": "2 + 3 =", "targets": ["5"], "metric": "exact_match"} | changes


def _code(**extras: Any) -> Record:
    return _record(metric="code_exec", extras=extras)


def _refusal(record: object, registry: Registry) -> RecordRefused:
    with pytest.raises(RecordRefused) as caught:
        check_compact_record(record, 1, registry)
    return caught.value


def _fault(record: object, registry: Registry) -> tuple[str, str]:
    refused = _refusal(record, registry)
    return refused.rule, refused.field


def _faults(records: list[Record], registry: Registry) -> list[tuple[int, str, str]]:
    data = "\n".join(map(json.dumps, records)).encode()
    return [(error.line_number, error.rule, error.field) for error in read_records(data, registry).errors]


# Whole files


def test_the_valid_records_between_bad_ones_are_kept() -> None:
    examples, _ = validate_file(DATA / "bad_compact.jsonl")
    expected = [("taken", 3), ("ex-4", 4), ("7", 5), ("two_forms", 50)]
    assert expected == [(example.id, example.line) for example in examples]


def test_a_file_has_one_metric_set_by_its_first_valid_record(registry: Registry) -> None:
    records = [_record(metric="f1", targets=[]), _record(), _record(metric="f1"), _record()]
    assert [(1, "bad_type", "targets"), (3, "bad_value", "metric")] == _faults(records, registry)


# Fields


@pytest.mark.parametrize(("given_id", "kept"), [(7, "7"), (-1, "-1"), (0, "0"), ("7", "7"), ("a b/é[1]", "a b/é[1]")])
def test_an_id_is_kept_raw_and_a_whole_number_becomes_its_text(given_id: Any, kept: str, registry: Registry) -> None:
    assert kept == check_compact_record(_record(id=given_id), 1, registry).id


def test_an_unknown_key_is_an_error_with_a_suggestion(registry: Registry) -> None:
    refused = _refusal(_record(extra={}), registry)
    assert ("unknown_field", "extra") == (refused.rule, refused.field)
    assert "did you mean 'extras'?" in refused.detail


def test_an_unknown_metric_is_an_error_with_a_suggestion_and_the_choices(registry: Registry) -> None:
    refused = _refusal(_record(metric="rouge"), registry)
    assert ("bad_value", "metric") == (refused.rule, refused.field)
    assert "did you mean 'rouge_l'?" in refused.detail
    assert "choices: accuracy, bleu, bleu_4, code_exec" in refused.detail


def test_a_prompt_may_end_in_whitespace_and_hold_markers(registry: Registry) -> None:
    prompt = "Q: 1 + 1\nA: 2\nQ: 2 + 3\nA: "
    assert prompt == check_compact_record(_record(prompt=prompt), 1, registry).prompt


def test_other_extras_are_the_authors_own(registry: Registry) -> None:
    extras = {"source": "me", "level": [1, {"a": None}]}
    assert extras == check_compact_record(_record(extras=extras), 1, registry).metadata


# Metrics and rules


def test_any_registered_metric_and_rule_may_be_used(registry: Registry) -> None:
    own = default_registry(entry_points=False)
    own.add_metric("length", lambda prediction, targets, extras: 1.0)
    own.add_rule("last_word", lambda text: text.split()[-1] if text.split() else None)
    record = _record(metric="length", extras={"post_process": "last_word"})
    example = check_compact_record(record, 1, own)
    assert ("length", "last_word") == (example.metric, example.post_process)
    assert ("bad_value", "metric") == _fault(record, registry)


def test_exact_match_ignores_case_and_spacing_and_keeps_its_word(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(_record(targets=["New  York"])))
    (task,) = load_tasks(file)
    assert "exact_match" == task.metric
    assert "exact_match" == task.examples[0].metric
    assert "exact_match_normalized" == task.metric_name(task.examples[0])


@pytest.mark.parametrize(
    ("record", "rule"),
    [
        (_record(), "none"),
        (_record(extras={"post_process": "lower"}), "lower"),
        (_code(io_pairs=[[1, 2]]), "extract_code_block"),
        (_code(io_pairs=[[1, 2]], post_process="none"), "none"),
    ],
)
def test_the_rule_is_none_but_for_code_unless_the_record_names_one(
    record: Record, rule: str, registry: Registry
) -> None:
    assert rule == check_compact_record(record, 1, registry).post_process


@pytest.mark.parametrize("targets", [[""], [" \n"], ["a", ""]])
def test_a_substring_that_every_text_contains_is_refused(targets: list[str], registry: Registry) -> None:
    assert ("bad_value", "targets") == _fault(_record(metric="substring_contains", targets=targets), registry)


@pytest.mark.parametrize("metric", ["bleu", "bleu_4", "f1", "math_equal", "rouge_1", "rouge_2", "rouge_l"])
def test_empty_targets_with_which_no_answer_could_score_are_refused(metric: str, registry: Registry) -> None:
    assert 0.0 == getattr(registry.metric(metric).function("", [""], {}), "value", 0.0)
    refusal = _refusal(_record(metric=metric, targets=["", " "]), registry)
    assert ("bad_value", "targets") == (refusal.rule, refusal.field)
    assert ("", "x") == check_compact_record(_record(metric=metric, targets=["", "x"]), 1, registry).targets
    assert ("",) == check_compact_record(_record(targets=[""]), 1, registry).targets


# Anything


def _checked(record: Record, registry: Registry) -> Example | RecordRefused:
    try:
        return check_compact_record(record, 3, registry)
    except RecordRefused as refused:
        return refused


_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(METRICS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_EXTRAS = st.dictionaries(
    st.sampled_from(
        ["io_pairs", "tests", "stdouts", "stdin", "tolerance", "entry_point", "timeout_s", "threshold", "post_process"]
    ),
    _ANY,
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, _ANY)), _EXTRAS, st.booleans())
def test_any_record_is_an_example_or_refused_by_a_known_rule(fields: Record, extras: Record, code: bool) -> None:
    record = _code(**extras) if code else _record(**fields)
    checked = _checked(record, default_registry(entry_points=False))
    if isinstance(checked, RecordRefused):
        assert checked.rule in {"bad_type", "bad_value"}
        assert re.split(r"[.[]", checked.field)[0] in FIELDS
    else:
        assert 3 == checked.line
        assert all(isinstance(target, str) for target in checked.targets)


@each_row(
    ("metric", "extras", "field"),
    [
        ("json_schema", {"json_schema": {"type": "nonsense"}}, "extras.json_schema"),
        ("csv_separator", {"separator": 5}, "extras.separator"),
        ("csv_columns", {"columns": "two"}, "extras.columns"),
    ],
)
def test_extras_by_which_no_answer_could_be_scored_are_refused_with_the_record(
    metric: str, extras: dict[str, Any], field: str
) -> None:
    needs.installed("jsonschema")
    with pytest.raises(RecordRefused) as refusal:
        check_compact_record(
            {"prompt": "p", "targets": ["t"], "metric": metric, "extras": extras}, 1, default_registry()
        )
    assert field == refusal.value.field


@pytest.mark.parametrize(
    ("metric", "key", "meant"),
    [
        ("exact_match", "must_pas", "must_pass"),
        ("exact_match", "treshold", "threshold"),
        ("exact_match", "mustPass", "must_pass"),
        ("exact_match", "quarantin", "quarantine"),
        ("code_exec", "io_pair", "io_pairs"),
        ("json_schema", "json_shema", "json_schema"),
        ("exact_match", "io_pair", ""),
        ("exact_match", "cluster_id", ""),
        ("exact_match", "subject", ""),
        ("exact_match", "source", ""),
    ],
)
def test_a_key_of_extras_that_is_nearly_one_that_is_read_is_refused(
    registry: Registry, metric: str, key: str, meant: str
) -> None:
    extras: Record = (
        {"json_schema": {}} if metric == "json_schema" else {"io_pairs": [[1, 2]]} if metric == "code_exec" else {}
    )
    record = {"prompt": "p", "targets": ["x"], "metric": metric, "extras": {**extras, key: True}}
    try:
        check_compact_record(record, 1, registry)
    except RecordRefused as refused:
        found = (refused.rule, refused.field, refused.detail)
    else:
        found = ("", "", "")
    wanted = f"nothing reads the key {key!r}; did you mean {meant!r}?"
    assert (("unknown_field", f"extras.{key}", wanted) if meant else ("", "", "")) == found


def test_the_extras_of_a_turn_and_of_a_conversation_are_held_to_the_same(registry: Registry) -> None:
    turns = [{"user": "a", "targets": ["x"], "extras": {"treshold": 0.5}}]
    with pytest.raises(RecordRefused, match="did you mean 'threshold'"):
        check_compact_record({"turns": turns}, 1, registry)
    with pytest.raises(RecordRefused, match="did you mean 'max_rounds'"):
        check_compact_record({"turns": [{"user": "a", "targets": ["x"]}], "extras": {"max_round": 2}}, 1, registry)
