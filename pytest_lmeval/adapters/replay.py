"""Answers recorded earlier, by (task, id): score a model again without asking it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate

__all__ = ["ReplayAdapter", "read_recording"]

_OUTPUT_KEYS = ("outputs", "output", "predictions", "prediction")


class ReplayAdapter:
    """Answers from a ledger, a leaderboard with per-example records, or JSONL of ``{"task"?, "id", "output"}``.

    ``outputs`` instead of ``output`` holds one text per repeat. The texts are raw: they are post-processed as any
    output. An example that the file does not hold is an error of that example, never an empty answer.
    """

    exact = True

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.name = f"replay:{self._path.name}"
        self._outputs: dict[tuple[str | None, str], tuple[str, ...]] = {}
        for task, example_id, outputs in read_recording(self._path):
            if (task, example_id) in self._outputs:
                raise UsageError(f"{self._path}: two outputs for {_label(task, example_id)}")
            self._outputs[task, example_id] = outputs

    def check_selection(self, keys: Iterable[tuple[str, str]]) -> None:
        """Raise UsageError where an output without a task would answer examples of two tasks."""
        first: dict[str, str] = {}
        for task, example_id in keys:
            other = first.setdefault(example_id, task)
            if other != task and (None, example_id) in self._outputs:
                shared = f"both {other!r} and {task!r} have an example {example_id!r}"
                raise UsageError(f'{self._path}: {shared}; give the recording a "task" field, or select one task')

    def generate_requests(self, requests: Sequence[Generate]) -> list[Completion | AdapterError]:
        """Return the recorded completion of each request, or the error that there is none."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Generate) -> Completion | AdapterError:
        outputs = self._outputs.get((request.task, request.id)) or self._outputs.get((None, request.id))
        if outputs is None:
            return AdapterError(f"{self._path} holds no output for {_label(request.task, request.id)}")
        if request.repeat >= len(outputs):
            held = f"{len(outputs)} output(s), not {request.repeat + 1}"
            return AdapterError(f"{self._path} holds {held}, for {_label(request.task, request.id)}")
        return Completion(outputs[request.repeat])


def read_recording(path: Path) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """Yield ``(task or None, id, outputs)`` from a recording of any of the three kinds."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"replay:{path}: cannot be read: {reason}") from None
    board = _as_board(text)
    if board is not None:
        yield from _from_board(board, path)
        return
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if _holds_record(line)]
    if lines and lines[0][1].startswith('{"header"'):
        yield from _from_ledger(line for _, line in lines)
        return
    for number, line in lines:
        record = _parse(line, f"{path}:{number}")
        yield _entry(record, record.get("task"), f"{path}:{number}")


def _holds_record(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _from_ledger(lines: Iterable[str]) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    # A run that was resumed may have asked an example again; one that ended in an error has no output; the last line
    # of a run that was killed may be torn.
    last: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("outputs"):
            last[str(record.get("task")), str(record.get("id"))] = tuple(record["outputs"])
    for (task, example_id), outputs in last.items():
        yield task, example_id, outputs


def _as_board(text: str) -> dict[str, Any] | None:
    # A board is one object over many lines; JSONL fails to parse as a whole at its second line.
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "tasks" in value else None


def _from_board(board: dict[str, Any], path: Path) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    for row in _objects(board["tasks"], path):
        if "per_example" not in row:
            raise UsageError(f"{path}: the board has no outputs; write it with --lm-include-per-example")
        for record in _objects(row["per_example"], path):
            # The board's ``prediction`` is post-processed: only the raw output may be replayed, and an example
            # without one had no answer.
            raw = {key: record[key] for key in ("id", "outputs", "output") if record.get(key) is not None}
            if raw.keys() - {"id"}:
                yield _entry(raw, row.get("task"), f"{path}: task {row.get('task')!r}")


def _objects(value: object, path: Path) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise UsageError(f"{path}: not a leaderboard: expected arrays of objects under tasks and per_example")
    return value


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise UsageError(f'{where}: expected an object such as {{"id": "a", "output": "b"}}')
    return record


def _entry(record: dict[str, Any], task: object, where: str) -> tuple[str | None, str, tuple[str, ...]]:
    example_id = record.get("id")
    key = next((key for key in _OUTPUT_KEYS if key in record), None)
    if not isinstance(example_id, str | int) or isinstance(example_id, bool) or key is None:
        raise UsageError(
            f'{where}: expected "id" and one of {", ".join(_OUTPUT_KEYS)}; got {", ".join(record) or "{}"}'
        )
    if task is not None and not isinstance(task, str):
        raise UsageError(f'{where}: "task" must be a string')
    outputs = record[key] if key in ("outputs", "predictions") else [record[key]]
    if not isinstance(outputs, list) or not all(isinstance(output, str) for output in outputs):
        raise UsageError(f"{where}: {key!r} must hold text, got {outputs!r}")
    return task, str(example_id), tuple(outputs)


def _label(task: str | None, example_id: str) -> str:
    return repr(example_id) if task is None else f"{example_id!r} of task {task!r}"
