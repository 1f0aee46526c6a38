"""Check the records of the strict dialect, whose vocabulary is closed.

A new entry in the vocabulary needs a metric or a rule, a shipped record that uses it, and a new ``SPEC_VERSION``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.task import render
from pytest_lmeval.types import Example, FewShot, Message

SPEC_VERSION = 1
MAX_FEW_SHOT = 8
REQUIRED = ("task_id", "category", "prompt", "targets", "metric_name", "post_process")
OPTIONAL = ("few_shot_examples", "metadata")
METRICS = ("accuracy", "bleu_4", "code_exec", "exact_match", "f1", "rouge_l")
POST_PROCESS = ("extract_code_block", "extract_first_line", "extract_letter", "lower", "none", "strip_whitespace")


class Category(NamedTuple):
    """The metrics and post-process rules that a category allows."""

    metrics: frozenset[str]
    post_process: frozenset[str]


CATEGORIES: Mapping[str, Category] = MappingProxyType(
    {
        "arithmetic": Category(
            frozenset({"exact_match", "f1"}), frozenset({"none", "strip_whitespace", "lower", "extract_first_line"})
        ),
        "mcq": Category(frozenset({"exact_match"}), frozenset({"none", "strip_whitespace", "extract_letter"})),
        "code_exec": Category(frozenset({"code_exec"}), frozenset({"none", "strip_whitespace", "extract_code_block"})),
        "classification": Category(
            frozenset({"exact_match", "accuracy", "f1"}), frozenset(POST_PROCESS) - {"extract_code_block"}
        ),
        "summary": Category(
            frozenset({"exact_match", "f1", "bleu_4", "rouge_l"}),
            frozenset(POST_PROCESS) - {"extract_letter", "extract_code_block"},
        ),
    }
)

_IN_METADATA = {
    "extras": " in this dialect it is called 'metadata'",
    **{
        name: f' write it into metadata: "metadata": {{"{name}": ...}}'
        for name in ("cluster", "difficulty", "must_pass", "tags", "threshold", "timeout_s")
    },
}
_TASK_ID = re.compile(r"[A-Za-z0-9_-]+")
_MCQ_TARGET = re.compile(r"[A-E]")
# A marker has no letter before it, so the "q:" of "faq:" is not a marker.
_FEW_SHOT_MARKER = re.compile(r"(?<![^\W\d_])(?:question:|q:|example:)", re.IGNORECASE)


def check_spec_record(record: object, line: int, folder: Path | None = None) -> Example:
    """Return the example that ``record`` describes; raise RecordRefused for the first rule it breaks.

    ``folder`` holds the record's file and images, or is None for the working folder.
    """
    fields = checks.check_fields(record, REQUIRED, OPTIONAL, _IN_METADATA)
    example = Example(
        id=_task_id(fields["task_id"]),
        category=checks.one_of(fields["category"], "category", CATEGORIES),
        prompt=(prompt := _prompt(fields["prompt"], folder))[0],
        targets=checks.strings(fields["targets"], "targets"),
        metric=checks.one_of(fields["metric_name"], "metric_name", METRICS),
        post_process=checks.one_of(fields["post_process"], "post_process", POST_PROCESS),
        few_shot_examples=_few_shot(fields.get("few_shot_examples", [])),
        metadata=_metadata(fields),
        line=line,
        messages=prompt[1],
    )
    _check_pairs(example)
    _check_targets(example)
    _check_embedded_few_shot(example.prompt)
    return _with_few_shots(example) if example.messages and example.few_shot_examples else example


def _with_few_shots(example: Example) -> Example:
    """Return an example with media whose message begins with the few-shot examples."""
    (message,) = example.messages
    shots = str(render(replace(example, messages=(), prompt=""))).rstrip("\n")
    return replace(example, messages=(Message.of_parts("user", (shots, *message.parts)),))


def _task_id(value: object) -> str:
    task_id = checks.string(value, "task_id")
    if not _TASK_ID.fullmatch(task_id):
        raise RecordRefused("bad_value", "task_id", f"{task_id!r} has characters other than A-Z a-z 0-9 _ -")
    return task_id


def _prompt(value: object, folder: Path | None) -> tuple[str, tuple[Message, ...]]:
    prompt, messages = checks.prompt_of(value, folder)
    for text in value if isinstance(value, list) else [prompt]:
        if isinstance(text, str) and text != text.rstrip():
            raise RecordRefused("bad_value", "prompt", f"ends in whitespace: {text[-20:]!r}")
    return prompt, messages


def _few_shot(value: object) -> tuple[FewShot, ...]:
    field = "few_shot_examples"
    if not isinstance(value, list):
        raise RecordRefused("bad_type", field, f"expected an array, got {checks.type_name(value)}")
    if len(value) > MAX_FEW_SHOT:
        raise RecordRefused("bad_value", field, f"at most {MAX_FEW_SHOT} are allowed, got {len(value)}")
    return tuple(_shot(element, index) for index, element in enumerate(value))


def _shot(element: object, index: int) -> FewShot:
    if not isinstance(element, dict) or element.keys() != {"prompt", "completion"}:
        got = f"keys {sorted(element)}" if isinstance(element, dict) else checks.type_name(element)
        detail = f"index {index}: expected exactly {{prompt, completion}}, got {got}"
        raise RecordRefused("bad_type", "few_shot_examples", detail)
    for key, text in element.items():
        if not isinstance(text, str):
            detail = f"index {index}: {key} must be a string, got {checks.type_name(text)}"
            raise RecordRefused("bad_type", "few_shot_examples", detail)
    return FewShot(element["prompt"], element["completion"])


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = checks.optional_object(fields, "metadata")
    checks.gate_fields(metadata, "metadata")
    if "timeout_s" in metadata:
        from pytest_lmeval.metrics.parts.code_plan import timeout_of

        timeout_of(metadata, "metadata")
    return metadata


def _check_pairs(example: Example) -> None:
    allowed = CATEGORIES[example.category]
    for field, value, choices in (
        ("metric_name", example.metric, allowed.metrics),
        ("post_process", example.post_process, allowed.post_process),
    ):
        if value not in choices:
            detail = f"category {example.category!r} allows {', '.join(sorted(choices))}; got {value!r}"
            raise RecordRefused("illegal_pair", field, detail)


def _check_targets(example: Example) -> None:
    checks.reachable(example.targets, example.metric)
    if example.category == "mcq" and (len(example.targets) != 1 or not _MCQ_TARGET.fullmatch(example.targets[0])):
        raise RecordRefused("bad_value", "targets", f"mcq needs one letter A to E, got {list(example.targets)!r}")
    if example.category == "code_exec":
        from pytest_lmeval.metrics.parts.code_plan import plan_targets

        plan_targets(example.targets)


def _check_embedded_few_shot(prompt: str) -> None:
    markers = _FEW_SHOT_MARKER.findall(prompt)
    if len(markers) > 1:
        found = ", ".join(repr(marker) for marker in markers)
        detail = f"the prompt holds a few-shot block ({found}); put worked examples into few_shot_examples"
        raise RecordRefused("embedded_few_shot", "prompt", detail)
