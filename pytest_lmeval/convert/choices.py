"""Questions with options as published, asked for a letter: ARC by AI2, and HellaSwag."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.convert.files import encode_lines, read_records, text_of, write_new
from pytest_lmeval.errors import UsageError

_INSTRUCTION = "Answer with the letter of the right option, and nothing else."
# Of more options the rule that reads the answer knows no letter.
_LETTERS = "ABCDE"
_Read = Callable[[Mapping[str, Any], str], tuple[str, Sequence[str], int]]


def convert_arc(source: Path, destination: Path) -> list[Path]:
    """Write ``arc.jsonl`` from a file of ARC-Easy or ARC-Challenge; return its path.

    A line has ``question``, with ``stem`` and ``choices`` of ``text`` and ``label``, and ``answerKey``, a label.
    Raises UsageError for anything else in ``source``, and for a file in ``destination`` that would be replaced.
    """
    return _convert("arc", _arc, source, destination)


def convert_hellaswag(source: Path, destination: Path) -> list[Path]:
    """Write ``hellaswag.jsonl`` from ``hellaswag_train.jsonl`` or ``hellaswag_val.jsonl``; return its path.

    A line has ``ctx``, ``endings`` and ``label``, the number of the right ending from 0; the test split has no labels.
    Raises UsageError for anything else in ``source``, and for a file in ``destination`` that would be replaced.
    """
    return _convert("hellaswag", _hellaswag, source, destination)


def _convert(name: str, read: _Read, source: Path, destination: Path) -> list[Path]:
    tasks = [
        _task_record(f"{name}-{number:05}", *read(record, place))
        for number, (place, record) in enumerate(read_records(source))
    ]
    return write_new({destination / f"{name}.jsonl": encode_lines(tasks)})


def _task_record(example_id: str, question: str, options: Sequence[str], gold: int) -> dict[str, Any]:
    listed = [f"{letter}. {option}" for letter, option in zip(_LETTERS, options, strict=False)]
    return {
        "id": example_id,
        "prompt": "\n".join([question.strip(), *listed, "", _INSTRUCTION]),
        "targets": [_LETTERS[gold]],
        "metric": "exact_match",
        "extras": {"post_process": "extract_letter"},
    }


def _arc(record: Mapping[str, Any], place: str) -> tuple[str, Sequence[str], int]:
    question = record.get("question")
    choices = question.get("choices") if isinstance(question, dict) else None
    if not isinstance(question, dict) or not isinstance(choices, list):
        raise UsageError(f"{place}: 'question' must be an object with 'stem' and 'choices', got {question!r:.80}")
    if not all(isinstance(choice, dict) for choice in choices):
        raise UsageError(f"{place}: 'choices' must be objects with 'text' and 'label', got {choices!r:.80}")
    labels, texts = ([text_of(choice, key, place) for choice in choices] for key in ("label", "text"))
    answer = text_of(record, "answerKey", place)
    if answer not in labels:
        raise UsageError(f"{place}: 'answerKey' must be one of {', '.join(labels) or 'no label'}, got {answer!r:.80}")
    return text_of(question, "stem", place), _checked(texts, place), labels.index(answer)


def _hellaswag(record: Mapping[str, Any], place: str) -> tuple[str, Sequence[str], int]:
    endings, label = record.get("endings"), record.get("label")
    if not isinstance(endings, list) or not all(isinstance(ending, str) for ending in endings):
        raise UsageError(f"{place}: 'endings' must be a list of strings, got {endings!r:.80}")
    # JSON's true is no number of an ending.
    if type(label) is not int or not 0 <= label < len(endings):
        raise UsageError(
            f"{place}: 'label' must be 0 to {len(endings) - 1}, got {label!r:.80}; the test split has none"
        )
    context = text_of(record, "ctx", place)
    return f"How does this go on?\n\n{context}", _checked(endings, place), label


def _checked(options: Sequence[str], place: str) -> Sequence[str]:
    if not 2 <= len(options) <= len(_LETTERS):
        raise UsageError(f"{place}: expected 2 to {len(_LETTERS)} options, got {len(options)}")
    return options
