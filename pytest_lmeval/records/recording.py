"""Read recorded outputs and judges' replies by task and id, from a run's files or from JSONL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.board import SCHEMA
from pytest_lmeval.leaderboard.details import FUNCTION, answered_requests, steps_of
from pytest_lmeval.records.ledger_lines import LedgerRuns, is_ledger, read_ledger
from pytest_lmeval.records.recorded import check_schema, parse_json, recorded_exchanges, recorded_texts
from pytest_lmeval.records.service import OUTSIDE, Outside
from pytest_lmeval.records.tool_calls import Place, RecordedCall, calls_in

_Kept = TypeVar("_Kept")
_OUTPUT_KEYS = ("outputs", "output", "predictions", "prediction")


class Outputs(tuple[str, ...]):
    """The recorded outputs for an example, one per repeat.

    ``thoughts`` holds the model's thoughts before each output, or is empty. ``cut_off`` is True if an output was cut
    off at a token limit. ``exchanges`` records the requests of an eval function, or of an example with several requests
    per response. An eval function has no outputs; ``calls`` records its tool calls.
    """

    thoughts: tuple[str, ...] = ()
    cut_off: bool = False
    exchanges: tuple[Mapping[str, Any], ...] = ()
    calls: Mapping[Place, RecordedCall] = MappingProxyType({})

    @classmethod
    def of(cls, outputs: tuple[str, ...], record: Mapping[str, Any]) -> Outputs:
        """Return ``outputs`` with the other fields of a result's ``record``; raise ValueError if a field is invalid."""
        found = cls(outputs)
        thoughts = recorded_texts(record.get("thoughts", []), "thoughts")
        found.thoughts = thoughts if len(thoughts) == len(outputs) else ()
        found.cut_off = record.get("cut_off") is True
        details = _details_of_function(record)
        found.exchanges = recorded_exchanges(record.get("exchanges", [])) or recorded_exchanges(
            answered_requests(details)
        )
        found.calls = calls_in(details)
        return found

    @property
    def has_answers(self) -> bool:
        """True if there are outputs, requests or tool calls to replay."""
        return bool(self or self.exchanges or self.calls)


def _details_of_function(record: Mapping[str, Any]) -> Mapping[str, Any]:
    details = record.get("details")
    return details if isinstance(details, Mapping) and FUNCTION in details else {}


def read_recording(path: Path) -> Iterator[tuple[str | None, str, Outputs]]:
    """Yield each ``(task or None, id, outputs)`` in a ledger, a leaderboard or a JSONL file."""
    ledger, data = _ledger_or_data(path, _of_result)
    if ledger is not None:
        # A resumed run may have repeated an example, whose last result counts. A result with an error has no output.
        last = {key: outputs for run in ledger.runs for key, outputs in run.results.items()}
        yield from ((*key, outputs) for key, outputs in last.items() if outputs.has_answers)
        try:
            if answers := recorded_exchanges(Outside.last_of(run.run for run in ledger.runs).answers):
                outside = Outputs()
                outside.exchanges = answers
                yield (*OUTSIDE, outside)
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from None
        return
    text = _text(data, path)
    if (board := _as_board(text)) is not None:
        check_schema(path, board.get("schema"), SCHEMA)
        yield from _from_board(board, path)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            record = _parse(line, f"{path}:{number}")
            yield _entry(record, record.get("task"), f"{path}:{number}")


def _ledger_or_data(path: Path, make: Callable[[dict[str, Any]], _Kept]) -> tuple[LedgerRuns[_Kept] | None, bytes]:
    """Return the runs of a ledger, or the bytes of any other file; raise UsageError if the file cannot be read."""
    try:
        # Read a ledger line by line, because little of it stays in memory. Read all of a pipe, because it cannot be
        # read twice.
        if path.is_file() and is_ledger(path):
            with path.open("rb") as lines:
                ledger = read_ledger(lines, path, make)
            if ledger is not None and ledger.runs:
                return ledger, b""
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"replay:{path}: cannot be read: {error.strerror}") from None
    ledger = read_ledger(BytesIO(data), path, make)
    return (ledger if ledger is not None and ledger.runs else None), data


def _board_records(data: bytes, path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the task, id and record of each example in a leaderboard; yield nothing for any other file."""
    board = _as_board(_text(data, path)) or {"tasks": []}
    for row in _objects(board["tasks"], path):
        for record in _objects(row.get("per_example", []), path):
            yield str(row.get("task")), str(record.get("id")), record


def _text(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"replay:{path}: cannot be read: not UTF-8") from None


def _of_result(record: Mapping[str, Any]) -> Outputs:
    return Outputs.of(recorded_texts(record.get("outputs", []), "outputs"), record)


def _as_board(text: str) -> dict[str, Any] | None:
    # A leaderboard is one JSON object over many lines; the parser rejects JSONL at the second line.
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "tasks" in value else None


def _from_board(board: dict[str, Any], path: Path) -> Iterator[tuple[str | None, str, Outputs]]:
    for row in _objects(board["tasks"], path):
        if "per_example" not in row:
            raise UsageError(f"{path}: the board has no outputs; write it with --lm-include-per-example")
        for record in _objects(row["per_example"], path):
            # Replay only raw outputs, because ``prediction`` is post-processed. An example without an output got no
            # answer.
            raw = {key: record[key] for key in ("id", "outputs", "output") if record.get(key) is not None}
            details = _details_of_function(record)
            if answered_requests(details) or calls_in(details):
                raw.setdefault("outputs", [])
            if raw.keys() - {"id"}:
                where = f"{path}: task {row.get('task')!r}"
                task, example, outputs = _entry(raw, row.get("task"), where)
                try:
                    yield task, example, Outputs.of(outputs, record)
                except ValueError as error:
                    raise UsageError(f"{where}: {error}") from None


def _objects(value: object, path: Path) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise UsageError(f"{path}: not a leaderboard: expected arrays of objects under tasks and per_example")
    return value


def _parse(line: str, where: str) -> dict[str, Any]:
    try:
        # Parse leniently, because other programs may write this file, and a replay uses only its texts.
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise UsageError(f'{where}: expected an object such as {{"id": "a", "output": "b"}}')
    return record


def _entry(record: dict[str, Any], task: object, where: str) -> tuple[str | None, str, Outputs]:
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
    return task, str(example_id), Outputs(outputs)


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judges' replies for one example.

    ``entries`` holds a tuple (judge's name, question's key, reply) for each question, in order. ``exchanges`` holds the
    records of an eval function's requests to judges.
    """

    entries: tuple[tuple[str, str, str], ...] = ()
    exchanges: tuple[Mapping[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries or self.exchanges)


def judge_entries(details: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each judge entry that has a key and a reply, from the details of a result and its repeats."""
    repeats = details.get("repeats", ())
    for each in (details, *(repeats if isinstance(repeats, list | tuple) else ())):
        found = [each.get(name) for name in ("judge", "user")] if isinstance(each, Mapping) else ()
        for entry in [entry for entries in found if isinstance(entries, list | tuple) for entry in entries]:
            if isinstance(entry, Mapping) and all(isinstance(entry.get(name), str) for name in ("key", "output")):
                yield entry


def judge_keys(details: Mapping[str, Any]) -> set[str]:
    """Return the ``adapter_key`` of each judge that replied, from the details of a result."""
    steps = (step for steps in steps_of(details) for step in steps)
    return {str(each["adapter_key"]) for each in (*judge_entries(details), *steps) if "adapter_key" in each}


def read_judgements(path: Path) -> Iterator[tuple[str, str, Judgements]]:
    """Yield each example's task, id and judges' replies; raise UsageError if the file has no replies."""
    ledger, data = _ledger_or_data(path, _judged)
    if ledger is not None:
        found = [(*key, judged) for run in ledger.runs for key, judged in run.results.items() if judged]
    else:
        found = [(task, id, judged) for task, id, record in _board_records(data, path) if (judged := _judged(record))]
    if not found:
        raise UsageError(
            f"replay:{path}: holds no reply of a judge; name the ledger of a run with a judge, or its leaderboard.json "
            "written with --lm-include-per-example"
        )
    yield from found


def _judged(record: Mapping[str, Any]) -> Judgements:
    details = record.get("details")
    if not isinstance(details, Mapping):
        return Judgements()
    entries = [
        (str(each.get("judge", each.get("user", ""))), each["key"], each["output"]) for each in judge_entries(details)
    ]
    return Judgements(tuple(entries), recorded_exchanges(answered_requests(details, "judge")))
