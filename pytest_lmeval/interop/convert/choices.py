"""Convert multiple-choice questions of ARC, HellaSwag, MMLU and TruthfulQA to prompts that ask for a letter."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records, read_table, text_of

_INSTRUCTION = "Answer with the letter of the right option, and nothing else."
# The rule that extracts the answer recognizes these letters.
_LETTERS = "ABCDE"
_Read = Callable[[Mapping[str, Any], str], tuple[str, Sequence[str], int]]


def convert_arc(source: Path, destination: Path) -> list[Path]:
    """Write ``arc.jsonl`` from a file of ARC-Easy or ARC-Challenge; return its path.

    A line has ``answerKey``, the label of the right choice, and ``question`` with ``stem`` and ``choices``. Each choice
    has ``text`` and ``label``.
    """
    return _convert("arc", _arc, read_records(source), destination)


def convert_hellaswag(source: Path, destination: Path) -> list[Path]:
    """Write ``hellaswag.jsonl`` from ``hellaswag_train.jsonl`` or ``hellaswag_val.jsonl``; return its path.

    A line has ``ctx``, ``endings`` and ``label``, the number of the right ending from 0; the test split has no labels.
    """
    return _convert("hellaswag", _hellaswag, read_records(source), destination)


def convert_mmlu(source: Path, destination: Path) -> list[Path]:
    """Write ``SUBJECT_test.jsonl`` from a file such as ``test/SUBJECT_test.csv`` of MMLU; return its path.

    The file has no header; a row has the question, four options, and the letter of the right option.
    """
    return _convert(source.stem, _mmlu, read_table(source, ("question", *"ABCD", "answer")), destination)


def convert_truthfulqa(source: Path, destination: Path) -> list[Path]:
    """Write ``truthfulqa.jsonl`` from ``TruthfulQA.csv``, each question with two answers; return its path.

    A row has ``Question``, ``Best Answer`` and ``Best Incorrect Answer``. A hash of the question determines which of
    the two answers is A.
    """
    return _convert("truthfulqa", _truthfulqa, read_table(source), destination)


def _convert(name: str, read: _Read, records: Iterable[tuple[str, Mapping[str, Any]]], destination: Path) -> list[Path]:
    tasks = [_task_record(f"{name}-{number:05}", *read(record, at)) for number, (at, record) in enumerate(records)]
    return NewFiles(destination, {f"{name}.jsonl": encode_lines(tasks)}).write()


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
    if type(label) is not int or not 0 <= label < len(endings):
        raise UsageError(
            f"{place}: 'label' must be 0 to {len(endings) - 1}, got {label!r:.80}; the test split has none"
        )
    context = text_of(record, "ctx", place)
    return f"How does this go on?\n\n{context}", _checked(endings, place), label


def _mmlu(record: Mapping[str, Any], place: str) -> tuple[str, Sequence[str], int]:
    answer = text_of(record, "answer", place)
    if answer not in tuple("ABCD"):
        raise UsageError(f"{place}: the last cell must be A, B, C or D, got {answer!r:.80}")
    return text_of(record, "question", place), [record[letter] for letter in "ABCD"], "ABCD".index(answer)


def _truthfulqa(record: Mapping[str, Any], place: str) -> tuple[str, Sequence[str], int]:
    question, *answers = (text_of(record, key, place) for key in ("Question", "Best Answer", "Best Incorrect Answer"))
    right = zlib.crc32(question.encode("utf-8")) % 2
    return question, answers[::-1] if right else answers, right


def _checked(options: Sequence[str], place: str) -> Sequence[str]:
    if not 2 <= len(options) <= len(_LETTERS):
        raise UsageError(f"{place}: expected 2 to {len(_LETTERS)} options, got {len(options)}")
    return options
