"""Files and folders to named tasks, every bad record of every file by name, and the shipped tasks among them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval import (
    BadTaskFile,
    Example,
    RecordRefused,
    Registry,
    UsageError,
    default_registry,
    load_all_tasks,
    load_tasks,
    validate_file,
    validate_task,
)
from pytest_lmeval.formats.compact import is_record
from pytest_lmeval.formats.files import file_task_name, find_task_files, task_name
from pytest_lmeval.formats.jsonl import is_spec_record, read_records
from pytest_lmeval.formats.spec import CATEGORIES, METRICS, POST_PROCESS
from tests.examples import examples
from tests.tables import each_row

DATA = Path(__file__).parents[1] / "data"
SHIPPED = Path(__file__).parents[2] / "tasks"
REGISTRY = default_registry(entry_points=False)
SPEC = {
    "task_id": "a",
    "category": "arithmetic",
    "prompt": "2 + 3 =",
    "targets": ["5"],
    "metric_name": "exact_match",
    "post_process": "none",
}
COMPACT = {"prompt": "2 + 3 =", "targets": ["5"], "metric": "exact_match"}


def _write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def _read(data: bytes) -> tuple[list[Example], list[tuple[int, str, str]], bool]:
    read = read_records(data, REGISTRY)
    return read.examples, [(error.line_number, error.rule, error.field) for error in read.errors], read.strict is True


def _lines(*records: Any) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


@each_row("dialect", ["compact", "spec"])
def test_every_bad_record_of_a_file_is_reported_by_its_first_broken_rule(dialect: str) -> None:
    expected = json.loads((DATA / f"bad_{dialect}.expected.json").read_text())
    _, errors = validate_file(DATA / f"bad_{dialect}.jsonl")
    reported = [
        {"line_number": error.line_number, "task_id": error.task_id, "rule": error.rule, "field": error.field}
        for error in errors
    ]
    assert expected == reported
    assert all(error.detail for error in errors)


# The dialect


@each_row("key", ["task_id", "category", "metric_name", "post_process"])
def test_one_word_of_the_strict_dialect_makes_a_file_strict(key: str) -> None:
    examples, faults, strict = _read(_lines({key: SPEC[key]}, SPEC))
    assert strict
    assert ["a"] == [example.id for example in examples]
    assert [(1, "missing_required")] == [fault[:2] for fault in faults]


def test_the_first_object_decides_the_dialect_and_nothing_before_it() -> None:
    data = b'{"task_id": cut off\n[1]\n"text"\n' + _lines(COMPACT, SPEC)
    examples, faults, strict = _read(data)
    assert not strict
    assert ["ex-4"] == [example.id for example in examples]
    assert [(1, "bad_json", "_line"), (2, "bad_type", "_root"), (3, "bad_type", "_root")] == faults[:3]
    assert (5, "missing_required", "metric") == faults[3]


def test_the_dialect_may_not_change_inside_a_file() -> None:
    _, faults, _ = _read(_lines(SPEC, COMPACT))
    assert [(2, "missing_required", "task_id")] == faults
    _, faults, _ = _read(_lines(COMPACT, COMPACT | {"task_id": "a"}))
    assert [(2, "unknown_field", "task_id")] == faults


# Any bytes

_PIECES = st.sampled_from(
    [
        *[json.dumps(record).encode() for record in (SPEC, SPEC | {"task_id": "b"}, COMPACT, COMPACT | {"id": 1}, {})],
        *[b"\n", b"\n", b"\n", b"\r\n", b"#", b" ", b"[", b"}", b'"', b"\xff", b"\xef\xbb\xbf", b"NaN", b"1e999"],
        "\u2028".encode(),
        "\u0085".encode(),
        b'"\\ud800"',
    ]
)


@examples(300)
@given(st.binary() | st.lists(_PIECES, max_size=12).map(b"".join))
def test_every_line_of_any_file_is_an_example_or_an_error_or_blank_or_a_comment(data: bytes) -> None:
    read = read_records(data, REGISTRY)
    accounted = [example.line for example in read.examples] + [error.line_number for error in read.errors]
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    silent = [number for number, line in enumerate(lines, 1) if line.strip(b" \t\r")[:1] in (b"", b"#")]
    assert list(range(1, len(lines) + 1)) == sorted(accounted + silent)
    assert len(read.examples) == len({example.id for example in read.examples})


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@settings(deadline=None)
@given(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=5), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_what_was_written_is_what_is_read(texts: list[tuple[str, str]], bom: bool, ending: str) -> None:
    records = [COMPACT | {"prompt": prompt, "targets": [target]} for prompt, target in texts]
    text = ending.join(json.dumps(record, ensure_ascii=False) for record in records)
    examples, faults, _ = _read((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    assert [] == faults
    assert texts == [(example.prompt, example.targets[0]) for example in examples]


def test_a_bad_line_spoils_only_itself() -> None:
    bad = [b"\xff", b"NaN", b'{"a": 1, "a": 2}', b'"\\ud800"', b"1e999", b"[" * 101 + b"]" * 101, b"0" * (1 << 21)]
    data = b"\n".join(line for each in bad for line in (each, json.dumps(COMPACT).encode()))
    examples, faults, _ = _read(data)
    assert [(number, "bad_json", "_line") for number in range(1, 14, 2)] == faults
    assert list(range(2, 15, 2)) == [example.line for example in examples]


def test_the_id_of_a_bad_record_may_be_used_again() -> None:
    examples, faults, _ = _read(_lines(SPEC | {"targets": []}, SPEC, SPEC))
    assert [2] == [example.line for example in examples]
    assert [(1, "bad_type", "targets"), (3, "duplicate_task_id", "task_id")] == faults


# Names


def test_a_task_is_named_by_its_path_below_the_root(tmp_path: Path) -> None:
    assert "en/qa" == task_name(tmp_path / "en" / "qa.jsonl", tmp_path)
    assert "v1.2" == task_name(tmp_path / "v1.2.jsonl", tmp_path)


def test_a_folder_gives_its_task_files_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "en/qa.jsonl", "notes.txt", "old.jsonl.bak", "recorded.replay.jsonl"):
        _write(tmp_path / name, COMPACT)
    found = list(find_task_files([tmp_path], REGISTRY))
    assert ["a", "b", "en/qa"] == [name for _, name in found]
    assert [tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "en" / "qa.jsonl"] == [path for path, _ in found]


@each_row(
    ("record", "expected"),
    [
        ({"turns": [{"user": "a"}]}, True),
        ({"turns": [{"user": 5}, 3]}, True),
        ({"turns": [{"role": "user", "content": "a"}]}, False),
        ({"turns": ["user"]}, False),
        ({"turns": {"user": "a"}}, False),
        ({"prompt": "a", "metric": "m", "extras": {}}, True),
        ({"prompt": "a", "metric": "m"}, False),
        ({"prompt": "a", "targets": ["b"]}, False),
    ],
)
def test_data_of_another_kind_is_told_apart_by_its_fields(record: dict[str, Any], expected: bool) -> None:
    assert expected == is_record(record)


def test_a_missing_path_and_a_file_of_another_kind_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        load_tasks(tmp_path / "gone")
    other = _write(tmp_path / "a.txt", COMPACT)
    with pytest.raises(UsageError, match=r"a\.txt: not a task file; expected one of \.jsonl"):
        load_tasks(other)


# Loading


def test_a_task_knows_its_file_and_its_hash(tmp_path: Path) -> None:
    file = _write(tmp_path / "en" / "qa.jsonl", COMPACT, COMPACT)
    (task,) = load_tasks(tmp_path)
    assert ("en/qa", file, "exact_match") == (task.name, task.path, task.metric)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == task.sha256
    assert ["ex-1", "ex-2"] == [example.id for example in task.examples]


def test_a_spec_file_may_mix_metrics(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.jsonl", SPEC, SPEC | {"task_id": "b", "metric_name": "f1"})
    (task,) = load_tasks(file)
    assert "mixed" == task.metric


def test_every_bad_record_of_every_file_is_named_at_once(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.jsonl", COMPACT, COMPACT | {"targets": []}, {})
    second = _write(tmp_path / "b.jsonl", SPEC, SPEC)
    empty = _write(tmp_path / "c.jsonl")
    with pytest.raises(BadTaskFile) as caught:
        load_tasks(tmp_path)
    lines = str(caught.value).split("\n")
    beginnings = [
        f"{first}:2: bad_type targets: ",
        f"{first}:3: missing_required prompt: ",
        f"{second}:2: duplicate_task_id task_id: ",
        f"{empty}:1: missing_required _root: ",
    ]
    assert beginnings == [line[: len(start)] for line, start in zip(lines, beginnings, strict=True)]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing here\n", "\ufeff", "\r\n"])
def test_a_file_without_a_record_is_a_bad_task_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(BadTaskFile, match=r"a\.jsonl:1: missing_required _root: no record"):
        load_tasks(tmp_path / "a.jsonl")


def test_two_tasks_of_one_name_are_an_error_that_names_both_files(tmp_path: Path) -> None:
    first, second = _write(tmp_path / "x" / "qa.jsonl", COMPACT), _write(tmp_path / "y" / "qa.jsonl", COMPACT)
    with pytest.raises(BadTaskFile, match="'qa'") as caught:
        load_tasks(tmp_path / "x", tmp_path / "y")
    assert str(first) in str(caught.value)
    assert str(second) in str(caught.value)
    assert ["x/qa", "y/qa"] == [task.name for task in load_tasks(tmp_path)]


def test_an_own_format_is_loaded_by_its_suffix(tmp_path: Path) -> None:
    registry = default_registry(entry_points=False)
    registry.add_format(".lines", registry.formats[".jsonl"].load)
    _write(tmp_path / "a.lines", COMPACT)
    assert ["a"] == [task.name for task in load_tasks(tmp_path, registry=registry)]


def test_load_all_tasks_gives_the_examples_by_task(tmp_path: Path) -> None:
    _write(tmp_path / "a.jsonl", COMPACT)
    _write(tmp_path / "en" / "b.jsonl", SPEC)
    loaded = load_all_tasks(tmp_path)
    assert {"a": ["ex-1"], "en/b": ["a"]} == {name: [each.id for each in group] for name, group in loaded.items()}


# One record, one file


def test_validate_task_takes_either_dialect() -> None:
    assert ("a", 1) == (validate_task(SPEC).id, validate_task(SPEC).line)
    assert "ex-9" == validate_task(COMPACT, line_number=9).id


@each_row("record", [{}, [], None, "text", SPEC | {"targets": []}, COMPACT | {"metric": "no"}])
def test_validate_task_refuses_by_rule_and_field(record: object) -> None:
    with pytest.raises(RecordRefused) as caught:
        validate_task(record)
    assert f"{caught.value.rule} {caught.value.field}: {caught.value.detail}" == str(caught.value)


def test_validate_file_knows_what_the_given_registry_knows(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.jsonl", COMPACT | {"metric": "own"})
    registry: Registry = default_registry(entry_points=False)
    registry.add_metric("own", lambda prediction, targets, extras: 1.0)
    assert 1 == len(validate_file(file)[1])
    assert 1 == len(validate_file(file, registry)[0])


# The shipped tasks


def _shipped(strict: bool) -> Iterator[Example]:
    for path in sorted(SHIPPED.rglob("*.jsonl")):
        examples, errors = validate_file(path)
        assert [] == errors
        lines = path.read_bytes().split(b"\n")
        for example in examples:
            if strict == is_spec_record(json.loads(lines[example.line - 1])):
                yield example


@each_row(("field", "words"), [("category", CATEGORIES), ("metric", METRICS), ("post_process", POST_PROCESS)])
def test_every_word_of_the_strict_dialect_has_a_shipped_record(field: str, words: Iterable[str]) -> None:
    assert set(words) <= {getattr(example, field) for example in _shipped(strict=True)}


@each_row("metric", ["exact_match", "substring_contains", "multiple_choice", "rouge_l", "code_exec"])
def test_every_compact_metric_has_a_shipped_record(metric: str) -> None:
    assert metric in {example.metric for example in _shipped(strict=False)}


@each_row("form", ["io_pairs", "tests", "stdouts"])
def test_every_form_of_code_has_a_shipped_record(form: str) -> None:
    assert any(form in example.metadata for example in _shipped(strict=False))


def test_the_shipped_tasks_load_under_their_names() -> None:
    names = {path.stem for path in SHIPPED.glob("*.jsonl")}
    assert names == {task.name for task in load_tasks(SHIPPED)}


@each_row(
    ("name", "path", "expected"),
    [
        ("words", "tasks/words.yaml", "words"),
        ("en/words@short", "tasks/en/words.yaml", "en/words"),
        ("y@1", "tasks/y@1.yaml", "y@1"),
        ("y@1@first", "tasks/y@1.yaml", "y@1"),
        ("y@y", "tasks/y.yaml", "y"),
        ("g::one", "tasks/all.yaml", "all"),
    ],
)
def test_the_name_of_a_file_is_found_in_that_of_a_variant(name: str, path: str, expected: str) -> None:
    assert expected == file_task_name(name, Path(path))
