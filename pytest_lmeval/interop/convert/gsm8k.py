"""Convert published GSM8K files, with or without models' solutions (https://github.com/openai/grade-school-math)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.file_names import safe_name
from pytest_lmeval.interop.files import NewFiles, encode_lines, read_records, text_of
from pytest_lmeval.postprocess import extract

_INSTRUCTION = "Think step by step. End with a line of its own that reads A: <number>, and nothing after it."
_RULE = "extract_answer"


def convert_gsm8k(source: Path, destination: Path) -> list[Path]:
    """Write ``gsm8k.jsonl`` and each model's solutions in ``source`` as ``MODEL.replay.jsonl``; return the paths.

    ``source`` may be ``train.jsonl`` or ``test.jsonl``, with ``question`` and ``answer``, which ends in ``####`` and a
    number. It may also be ``example_model_solutions.jsonl``, with ``question`` and ``ground_truth``, which ends in
    ``A:`` and a number. A line of recorded solutions has an object with ``solution`` under each model's name. The
    recordings do not name the task, so the task file may be in any folder.
    """
    tasks: list[dict[str, Any]] = []
    recordings: dict[str, list[dict[str, Any]]] = {}
    for place, record in read_records(source):
        example_id = f"gsm8k-{len(tasks):04}"
        solutions = _solutions(record, recordings if tasks else None, place)
        tasks.append(_task_record(example_id, record, place))
        for model, solution in solutions.items():
            recordings.setdefault(model, []).append({"id": example_id, "output": solution})
    files = {f"{model}.replay.jsonl": encode_lines(recordings[model]) for model in sorted(recordings)}
    return NewFiles(destination, {"gsm8k.jsonl": encode_lines(tasks), **files}).write()


def _task_record(example_id: str, record: dict[str, Any], place: str) -> dict[str, Any]:
    # The rule for predictions extracts the target, too.
    key = _answer_key(record)
    answer = extract(_RULE, text_of(record, key, place))
    if not answer.found:
        mark = "####" if key == "answer" else "A:"
        raise UsageError(f"{place}: {key!r} has no line that starts with {mark} and gives the answer")
    return {
        "id": example_id,
        "prompt": f"{text_of(record, 'question', place).strip()}\n\n{_INSTRUCTION}",
        "targets": [answer.text],
        "metric": "exact_match",
        "extras": {"post_process": _RULE},
    }


def _answer_key(record: dict[str, Any]) -> str:
    """Return the right answer's key; a file with recorded solutions uses a different key."""
    return "answer" if isinstance(record.get("answer"), str) and "ground_truth" not in record else "ground_truth"


def _solutions(record: dict[str, Any], models: dict[str, Any] | None, place: str) -> dict[str, str]:
    """Return each model's solution.

    ``models`` contains the first line's models, and is None for the first line itself.
    """
    named = {key: value for key, value in record.items() if key not in ("question", _answer_key(record))}
    for model, value in named.items():
        if model != safe_name(model, "", dots=True):
            raise UsageError(f"{place}: the model name {model!r} is not a file name; expected A-Z a-z 0-9 _ . -")
        if not isinstance(value, dict):
            raise UsageError(f"{place}: {model!r} must be an object with a 'solution', got {value!r:.80}")
    uneven = sorted(named.keys() ^ models) if models is not None else []
    if uneven:
        raise UsageError(f"{place}: {uneven[0]!r} is on some lines and missing on others; each needs the same models")
    return {model: text_of(value, "solution", f"{place}: {model}") for model, value in named.items()}
