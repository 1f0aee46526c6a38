"""One entry of ``icl_tasks``, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.numbers import is_whole

KINDS = ("language_modeling", "multiple_choice", "schema")
_REQUIRED = ("label", "dataset_uri", "num_fewshot", "icl_task_type")
_OPTIONAL = ("continuation_delimiter", "has_categories")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@ -]{0,199}")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a task is called, where its records are, and how they are put to the model."""

    label: str
    uri: str
    shots: int
    kind: str
    delimiter: str = " "
    has_categories: bool = False


def check_entry(given: object) -> Entry:
    """Return the entry that ``given`` describes; raise RecordRefused for the first rule it breaks."""
    fields = checks.check_fields(given, _REQUIRED, _OPTIONAL)
    label = checks.string(fields["label"], "label")
    if not _LABEL.fullmatch(label) or label != label.strip():
        detail = f"{label!r}; expected letters, digits and _ . : / @ - at most 200, a letter, digit or _ first"
        raise RecordRefused("bad_value", "label", detail)
    return Entry(
        label=label,
        uri=_uri(fields["dataset_uri"]),
        shots=_shots(fields["num_fewshot"]),
        kind=checks.one_of(fields["icl_task_type"], "icl_task_type", KINDS),
        delimiter=_text(fields.get("continuation_delimiter", " ")),
        has_categories=_flag(fields),
    )


def _uri(value: object) -> str:
    uri = checks.string(value, "dataset_uri")
    if "://" in uri or "\0" in uri:
        raise RecordRefused("bad_value", "dataset_uri", f"{uri!r}; expected a local file, relative to this one")
    return uri


def _shots(value: object) -> int:
    # The files of both projects list the numbers to run a task with, and theirs have one each.
    if isinstance(value, list):
        if len(value) != 1:
            raise RecordRefused("bad_value", "num_fewshot", f"expected one number, got a list of {len(value)}")
        value = value[0]
    if not is_whole(value):
        raise RecordRefused("bad_type", "num_fewshot", f"expected a whole number from 0, got {checks.type_name(value)}")
    if value < 0:
        raise RecordRefused("bad_value", "num_fewshot", f"expected a whole number from 0, got {value}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise RecordRefused("bad_type", "continuation_delimiter", f"expected a string, got {checks.type_name(value)}")
    return value


def _flag(fields: Mapping[str, Any]) -> bool:
    value = fields.get("has_categories", False)
    if not isinstance(value, bool):
        raise RecordRefused("bad_type", "has_categories", f"expected true or false, got {checks.type_name(value)}")
    return value
