"""The schemas of task records agree with the validators: what one refuses, the other does."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.jsonl import is_spec_record
from pytest_lmeval.formats.spec import CATEGORIES, METRICS, OPTIONAL, POST_PROCESS, REQUIRED
from pytest_lmeval.loading import validate_task
from pytest_lmeval.schemas import load_schema
from tests.examples import examples
from tests.schemas import validator
from tests.tables import each_row

Record = dict[str, Any]
Place = tuple[str | int, ...]
ROOT = Path(__file__).parents[1]
TASK_FILES = sorted((ROOT / "tasks").glob("*.jsonl"))


def _is_valid(name: str, value: Any) -> bool:
    return bool(validator(name).is_valid(value))


def _records(path: Path) -> Iterator[Any]:
    for _, line in number_lines(path.read_bytes()):
        try:
            yield parse_line(line)
        except RecordRefused:
            continue


def _refusal(record: Any) -> RecordRefused | None:
    try:
        validate_task(record)
    except RecordRefused as refused:
        return refused
    return None


# --- strict records: schema and validator agree --------------------------------------------------------------------

_VALID_SPEC = [record for path in TASK_FILES for record in _records(path) if is_spec_record(record)]
_PIECES = [
    *("q:", "Q:", "Question:", "QUE\u017fT\u0131ON:", "example:"),
    *("Example", ":", " ", "\n", "é", "7", "_", "²", "x"),
]
_PROMPTS = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=7).map("".join)
_ENDINGS = st.tuples(st.just("2 + 2 ="), st.characters()).map("".join)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
_NUMBERS = st.sampled_from([-0.1, 0, 0.0, 0.5, 1, 1.0, 1.1, 30, 30.5, True, "1", None])
_SHOT = st.fixed_dictionaries({"prompt": _JSON}, optional={"completion": st.text(max_size=5), "note": _JSON})
_GOOD_SHOT = st.fixed_dictionaries({"prompt": st.text(max_size=5), "completion": st.text(max_size=5)})
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "task_id": st.text("aZ09_-. \né", max_size=4),
    "category": st.sampled_from(sorted(CATEGORIES)),
    "prompt": _PROMPTS | _ENDINGS,
    "targets": st.lists(st.sampled_from("ABEFa") | st.text(max_size=3), max_size=2),
    "metric_name": st.sampled_from(METRICS),
    "post_process": st.sampled_from(POST_PROCESS),
    "few_shot_examples": st.lists(_GOOD_SHOT, max_size=10) | st.lists(_SHOT, max_size=2),
    "metadata": st.fixed_dictionaries({}, optional={"threshold": _NUMBERS, "timeout_s": _NUMBERS, "tags": _JSON}),
    "note": st.just("an unknown field"),
}
_DELETE = object()
_ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 0.5, 1.5, 30, 31, "", "x"),
    *([], [[]], ["x"], [1], [[1, 2]], {}, {"x": 1}, _DELETE),
)
_MUTATIONS = st.lists(
    st.sampled_from(sorted(_FIELDS)).flatmap(
        lambda key: st.tuples(st.just(key), _FIELDS[key] | _FIELDS[key] | _JSON | st.just(_DELETE))
    ),
    min_size=1,
    max_size=3,
)


def _put(record: Record, path: Place, value: Any) -> Record:
    """Return a copy of ``record`` with ``value`` at ``path``, whose parents are there."""
    changed: Any = copy.deepcopy(record)
    *parents, last = path
    holder: Any = functools.reduce(lambda inner, step: inner[step], parents, changed)
    if value is not _DELETE:
        holder[last] = value
    elif last == 0 or last in holder:
        del holder[last]
    return dict(changed)


def _mutated(record: Record, mutations: list[tuple[str, Any]]) -> Record:
    return functools.reduce(lambda changed, mutation: _put(changed, (mutation[0],), mutation[1]), mutations, record)


def _is_about_python(record: Record, refused: RecordRefused) -> bool:
    """Tell whether it takes a Python parser to refuse the targets of ``record``."""
    return record.get("category") == "code_exec" and (refused.rule, refused.field) == ("bad_value", "targets")


def _check_agreement(record: Any) -> None:
    refused = _refusal(record)
    is_strict = isinstance(record, dict) and is_spec_record(record)
    if refused is not None and is_strict and _is_about_python(record, refused):
        return
    assert (refused is None and is_strict) == _is_valid("spec-record", record), refused


@examples(300)
@given(record=st.sampled_from(_VALID_SPEC), mutations=_MUTATIONS)
@example(record=_VALID_SPEC[0], mutations=[("task_id", "trailing\n")])
@example(record=_VALID_SPEC[0], mutations=[("prompt", "one line\n")])
@example(record=_VALID_SPEC[0], mutations=[("prompt", "Q: 1 + 1 = 2\nQ: 1 + 2")])
@example(record=_VALID_SPEC[0], mutations=[("prompt", "Q:Q:")])
@example(record=_VALID_SPEC[0], mutations=[("prompt", "faq: and éq: hold no marker, this does. Q: 1")])
def test_schema_and_validator_agree_on_mutated_strict_records(record: Record, mutations: list[tuple[str, Any]]) -> None:
    _check_agreement(_mutated(record, mutations))


@examples(300)
@given(prompt=_PROMPTS | _ENDINGS)
def test_schema_and_validator_agree_on_prompts(prompt: str) -> None:
    _check_agreement({**_VALID_SPEC[0], "prompt": prompt})


@given(value=_JSON)
def test_schema_and_validator_agree_on_what_is_no_record(value: Any) -> None:
    assert not _is_valid("spec-record", value)
    assert not _is_valid("compact-record", value)
    assert _refusal(value) is not None


_SHOTS = [{"prompt": "1 + 1 =", "completion": "2"}]
_STRICT = {**_VALID_SPEC[0], "few_shot_examples": _SHOTS, "metadata": {"threshold": 1}}
_STRICT_PLACES: tuple[Place, ...] = (
    *((key,) for key in (*REQUIRED, *OPTIONAL, "note")),
    ("targets", 0),
    ("few_shot_examples", 0),
    ("few_shot_examples", 0, "prompt"),
    ("few_shot_examples", 0, "completion"),
    ("few_shot_examples", 0, "note"),
    ("metadata", "threshold"),
    ("metadata", "timeout_s"),
)


@each_row("place", _STRICT_PLACES)
def test_schema_and_validator_agree_on_odd_values_in_strict_records(place: Place) -> None:
    for value in _ODD:
        _check_agreement(_put(_STRICT, place, value))


def test_schema_and_validator_agree_on_every_pair_of_the_vocabulary() -> None:
    for category, metric, rule in itertools.product(CATEGORIES, METRICS, POST_PROCESS):
        changed = {"category": category, "metric_name": metric, "post_process": rule, "targets": ["A"]}
        _check_agreement({**_VALID_SPEC[0], **changed})


def test_schema_and_validator_agree_on_the_vocabulary_of_fields() -> None:
    schema = load_schema("spec-record")
    assert list(REQUIRED) == schema["required"]
    assert [*REQUIRED, *OPTIONAL] == list(schema["properties"])


def test_schema_and_validator_agree_on_the_bad_strict_records() -> None:
    for record in _records(ROOT / "tests/data/bad_spec.jsonl"):
        _check_agreement(record)


# --- compact records: what the validator takes, the schema takes -----------------------------------------------------

_VALID_COMPACT = [record for path in TASK_FILES for record in _records(path) if not is_spec_record(record)]
_COMPACT_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.text(max_size=3) | st.integers(),
    "prompt": st.text(max_size=3),
    "targets": st.lists(st.text(max_size=2), max_size=2),
    "metric": st.sampled_from(["exact_match", "substring_contains", "multiple_choice", "rouge_l", "code_exec", "f1"]),
    "extras": st.fixed_dictionaries(
        {},
        optional={
            "io_pairs": st.just([[1, 2]]) | st.lists(st.lists(st.integers(), max_size=2), max_size=2) | _JSON,
            "tests": st.just("def check(candidate): pass") | _JSON,
            "entry_point": st.just("f") | _JSON,
            "stdouts": st.booleans() | _JSON,
            "post_process": st.sampled_from([*POST_PROCESS, "extract_answer"]) | _JSON,
            "threshold": _NUMBERS,
            "timeout_s": _NUMBERS,
            "tags": _JSON,
        },
    ),
    "note": st.just("an unknown field"),
}
_COMPACT_MUTATIONS = st.lists(
    st.sampled_from(sorted(_COMPACT_FIELDS)).flatmap(
        lambda key: st.tuples(st.just(key), _COMPACT_FIELDS[key] | _COMPACT_FIELDS[key] | _JSON | st.just(_DELETE))
    ),
    min_size=1,
    max_size=3,
)


def _is_beyond_a_schema(record: Record, refused: RecordRefused) -> bool:
    """Tell whether it takes a registry, a Python parser or the digits as they are written to refuse ``record``."""
    if refused.field == "id":
        return isinstance(record["id"], float) and record["id"].is_integer()
    if refused.field == "extras.entry_point" and "entry_point" not in record["extras"]:
        return False
    fields = ("metric", "extras.post_process", "extras.tests", "extras.entry_point")
    return refused.field in fields and refused.rule == "bad_value"


def _check_compact_agreement(record: Record) -> None:
    refused = _refusal(record)
    if refused is not None and _is_beyond_a_schema(record, refused):
        return
    assert (refused is None) == _is_valid("compact-record", record), (record, refused)


@examples(300)
@given(record=st.sampled_from(_VALID_COMPACT), mutations=_COMPACT_MUTATIONS)
def test_schema_and_validator_agree_on_mutated_compact_records(
    record: Record, mutations: list[tuple[str, Any]]
) -> None:
    _check_compact_agreement(_mutated(record, mutations))


_TESTS = {"tests": "def check(candidate): pass", "entry_point": "f"}
_COMPACT = [
    {"prompt": "1 + 1 =", "targets": ["2"], "metric": metric, "extras": extras}
    for metric, extras in (
        ("exact_match", {}),
        ("substring_contains", {}),
        ("code_exec", {"io_pairs": [[1, 2]]}),
        ("code_exec", _TESTS),
        ("code_exec", {"stdouts": True}),
    )
]
_EXTRAS = ("io_pairs", "tests", "stdouts", "entry_point", "timeout_s", "threshold", "post_process", "category")


@pytest.mark.parametrize(
    "record",
    [pytest.param(record, marks=[pytest.mark.again] if place % 3 else []) for place, record in enumerate(_COMPACT)],
    ids=lambda record: "-".join([record["metric"], *record["extras"]]),
)
def test_schema_and_validator_agree_on_odd_values_in_compact_records(record: Record) -> None:
    places = [*((key,) for key in _COMPACT_FIELDS), ("targets", 0), *(("extras", key) for key in _EXTRAS)]
    for place, value in itertools.product(places, _ODD):
        _check_compact_agreement(_put(record, place, value))


def test_schema_and_validator_agree_on_the_bad_compact_records() -> None:
    for record in _records(ROOT / "tests/data/bad_compact.jsonl"):
        if isinstance(record, dict) and not is_spec_record(record):
            _check_compact_agreement(record)
