"""The first line of a compact file may say what its records have in common, and a prompt to be filled with the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval import Example, Registry, default_registry
from pytest_lmeval.formats.jsonl import read_records
from tests.conftest import Project
from tests.tables import each_row

Record = dict[str, Any]
PROMPT = "Classify: {{ text }}"
ROW: Record = {"text": "good", "targets": ["yes"]}


def _registry() -> Registry:
    return default_registry(entry_points=False)


def _read(defaults: object, *records: object) -> tuple[list[Example], list[tuple[int, str, str, str]]]:
    lines = [{"defaults": defaults}, *records]
    read = read_records("\n".join(map(json.dumps, lines)).encode(), _registry())
    assert not read.strict
    return read.examples, [(each.line_number, each.rule, each.field, each.detail) for each in read.errors]


def _one(defaults: object, record: Record) -> Example:
    (example,), errors = _read(defaults, record)
    assert [] == errors
    return example


def _fault(defaults: object, record: object = ROW) -> str:
    _, ((_, rule, field, detail),) = _read(defaults, record)
    return f"{rule} {field}: {detail}"


USUAL = {"prompt": PROMPT, "metric": "exact_match"}


@each_row(
    ("changes", "record", "expected"),
    [
        ({}, ROW, {"prompt": "Classify: good", "metric": "exact_match", "metadata": {}, "line": 2, "id": "ex-2"}),
        ({}, {**ROW, "prompt": "Own"}, {"prompt": "Own"}),
        ({}, {**ROW, "metric": "f1"}, {"metric": "f1"}),
        ({}, {**ROW, "text": "{{ 7 * 7 }}"}, {"prompt": "Classify: {{ 7 * 7 }}"}),
        ({"threshold": 0.5}, ROW, {"metadata": {"threshold": 0.5}}),
        ({"threshold": 0.5}, {**ROW, "extras": {"threshold": 1}}, {"metadata": {"threshold": 1}}),
        ({"post_process": "lower"}, ROW, {"post_process": "lower", "metadata": {"post_process": "lower"}}),
        ({"extras": {"not": True, "a": 1}}, {**ROW, "extras": {"a": 2}}, {"metadata": {"not": True, "a": 2}}),
        ({"columns": ["by"]}, {**ROW, "by": "me"}, {"prompt": "Classify: good"}),
        ({"prompt": '{{ row["the text"] }}'}, {"targets": ["y"], "the text": "x"}, {"prompt": "x"}),
        ({"prompt": "{{ text | default('none') }}{{ n }}"}, {**ROW, "n": 3}, {"prompt": "good3"}),
        ({"prompt": "{{ text | default('none') }}"}, {"targets": ["y"]}, {"prompt": "none"}),
        (
            {"prompt": "{% for each in of %}{{ each }};{% endfor %}"},
            {"targets": ["y"], "of": [1, "b"]},
            {"prompt": "1;b;"},
        ),
    ],
)
def test_a_record_has_what_it_says_and_else_the_defaults(changes: Record, record: Record, expected: Record) -> None:
    example = _one({**USUAL, **changes}, record)
    assert expected == {name: getattr(example, name) for name in expected}


@each_row(
    ("defaults", "said"),
    [
        (["prompt"], "bad_type defaults: expected an object, got an array"),
        ({"promt": "x"}, "unknown_field defaults.promt: unknown field 'promt'; did you mean 'prompt'?"),
        ({"targets": ["x"]}, "unknown_field defaults.targets: unknown field 'targets'; expected one of prompt, metric"),
        ({"prompt": 3}, "bad_type defaults.prompt: expected a non-empty string"),
        (
            {"prompt": "{{ text.__class__ }}{% include 'x' %}"},
            "bad_value defaults.prompt: line 1 of the template: include",
        ),
        ({"prompt": "{{ targets[0] }}"}, "bad_value defaults.prompt: 'targets' is a field of records"),
        (
            {"metric": "exact_mach"},
            "bad_value defaults.metric: unknown metric 'exact_mach'; did you mean 'exact_match'?",
        ),
        ({"metric": "turns"}, "bad_value defaults.metric: turns is the metric of a record that has turns"),
        ({"post_process": "strip"}, "bad_value defaults.post_process: 'strip' is not one of"),
        ({"threshold": 2}, "bad_value defaults.threshold: expected a number in [0, 1]"),
        ({"threshold": 1, "extras": {"threshold": 1}}, "bad_value defaults.threshold: defaults.extras has 'threshold'"),
        ({"extras": []}, "bad_type defaults.extras: expected an object, got an array"),
        ({"extras": {"must_pass": 1}}, "bad_type defaults.extras.must_pass: expected true or false"),
        ({"columns": "by"}, "bad_type defaults.columns: expected a non-empty array"),
        ({"columns": ["id"]}, "bad_value defaults.columns: 'id' is a field of records"),
        ({"columns": ["a", "a"]}, "bad_value defaults.columns: 'a' occurs twice"),
    ],
)
def test_bad_defaults_are_one_error_whatever_follows(defaults: object, said: str) -> None:
    assert _fault(defaults).startswith(said)


@each_row(
    ("record", "said"),
    [
        ({"txt": "x", "targets": ["y"]}, "unknown_field txt: unknown field 'txt'; did you mean 'text'?"),
        ({**ROW, "target": "x"}, "unknown_field target: unknown field 'target'; did you mean 'targets'?"),
        (
            {**ROW, "zzz": 1},
            "unknown_field zzz: unknown field 'zzz'; nothing uses it: list columns that are only data in ",
        ),
        ({**ROW, "threshold": 1}, "unknown_field threshold: unknown field 'threshold'; write it into extras"),
        ({**ROW, "text": None}, "bad_value prompt: 'text' is empty"),
        ({"text": "x"}, "missing_required targets"),
        ({**ROW, "extras": 3}, "bad_type extras: expected an object"),
        ([], "bad_type _root: expected an object, got an array"),
        ({"turns": [{"user": "x", "targets": ["x"]}], "by": 1}, "unknown_field by"),
    ],
)
def test_a_bad_record_of_a_file_with_defaults(record: object, said: str) -> None:
    assert _fault(USUAL, record).startswith(said)


def test_a_template_that_fails_is_the_fault_of_its_record() -> None:
    examples, errors = _read(
        {**USUAL, "prompt": "{{ n + 1 }}"}, {"n": "x", "targets": ["1"]}, {"n": 1, "targets": ["2"]}
    )
    assert ["2"] == [each.prompt for each in examples]
    assert [(2, "bad_value", "prompt")] == [each[:3] for each in errors]


def test_turns_and_records_without_a_template_have_the_extras() -> None:
    turns = _one({"threshold": 0.5}, {"turns": [{"user": "x", "targets": ["x"]}]})
    assert 0.5 == turns.metadata["threshold"]
    assert "a" == _one({"metric": "f1"}, {"prompt": "a", "targets": ["b"]}).prompt


@each_row(
    ("lines", "said"),
    [
        ([{"defaults": USUAL, "metric": "f1"}, ROW], "a line with defaults has no other key"),
        ([{"defaults": USUAL, "task_id": "x"}, ROW], "a line with defaults has no other key"),
    ],
)
def test_defaults_have_a_line_alone(lines: list[Record], said: str) -> None:
    (error,) = read_records("\n".join(map(json.dumps, lines)).encode(), _registry()).errors
    assert ("unknown_field", True) == (error.rule, error.detail.startswith(said))


@pytest.mark.parametrize("processes", ["-n0", pytest.param("-n2", marks=pytest.mark.again)])
def test_a_run_asks_what_the_template_says(project: Project, processes: str) -> None:
    lines = [
        {"defaults": {"prompt": "say: {{ said }}", "metric": "exact_match"}},
        {"id": "right", "said": "red", "targets": ["red"]},
        {"id": "wrong", "said": "{{ 1 + 1 }}", "targets": ["2"]},
    ]
    project.write("tasks/words.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    project.run("tasks", processes).assert_outcomes(passed=1, failed=1)
    found = project.ledger()
    assert ("passed", "failed") == (found["words:right"]["status"], found["words:wrong"]["status"])
    assert "say: {{ 1 + 1 }}" == found["words:wrong"]["prompt"]


def test_a_file_with_defaults_beside_a_python_task_is_a_task_and_one_with_them_alone_is_refused(
    project: Project,
) -> None:
    lines = [{"defaults": {**USUAL, "prompt": "say: {{ text }}"}}, {"text": "yes", "targets": ["yes"]}]
    project.write("tasks/words.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    project.write("tasks/task_x.py", "DATASET_PATH = 'words.jsonl'\n")
    project.run("tasks/words.jsonl").assert_outcomes(passed=1)
    project.write("tasks/words.jsonl", json.dumps(lines[0]))
    done = project.run("tasks/words.jsonl")
    assert 2 == done.ret
    done.stdout.fnmatch_lines(["*words.jsonl:1: missing_required _root: no record in the file*"])
