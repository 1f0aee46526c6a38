"""Read a run from its ledger or leaderboard, for comparisons and merges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import SCHEMA, SERVICE, Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.board import digest as digest_of
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boards_read import board_facts, board_infos, board_results, facts_from
from pytest_lmeval.records.ledger_lines import LEDGER_SCHEMA, LedgerRuns, is_ledger, read_ledger
from pytest_lmeval.records.recorded import check_schema, parse_json, recorded_aggregates, recorded_info, recorded_result
from pytest_lmeval.records.service import NONE_OUTSIDE, Outside
from pytest_lmeval.text import item_name
from pytest_lmeval.types import ExampleResult

_Key = tuple[str, str]
LARGE = 16 << 20
"""The size in bytes from which a ledger's texts stay in the file; the texts of a smaller ledger fit in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A run, read from its file.

    ``results`` holds the last result for each (task, id); it is None for a leaderboard without per-example records.
    ``digest`` is the digest in the file; it is empty for an unfinished run. ``board`` is the JSON of a leaderboard
    file, or None for a ledger. ``aggregates`` holds the output of tasks' own aggregation functions, by task.
    ``damaged`` counts the lines that hold no JSON object, and ``first_damaged`` is the number of the first damaged
    line. ``outside`` holds the requests that belong to no example.
    """

    path: Path
    kind: Literal["ledger", "leaderboard"]
    facts: RunFacts
    complete: bool
    infos: Mapping[str, TaskInfo]
    results: tuple[ExampleResult, ...] | None
    digest: str = ""
    asking: str = ""
    board: Mapping[str, Any] | None = field(default=None, repr=False)
    aggregates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    damaged: int = 0
    first_damaged: int = 0
    outside: Outside = field(default=NONE_OUTSIDE, repr=False)

    @property
    def adapter(self) -> str:
        """The adapter's name."""
        return self.facts.adapter

    @property
    def timestamp(self) -> str:
        """The start time of the run in UTC, in RFC 3339 format."""
        return self.facts.timestamp

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's manifest: its versions, settings and environment."""
        return self.facts.manifest

    @property
    def selection(self) -> Mapping[str, Any]:
        """The selection of examples, which is empty if the run included all examples."""
        return self.facts.selection

    @property
    def agrees(self) -> bool:
        """True unless the results' digest differs from the digest in the file."""
        return not self.digest or self.results is None or digest_of(self.results) == self.digest


_OF_TASKS = frozenset({"checks", "metric", "targets", "turns"})
_OF_RESULTS = frozenset({"hash", "output", "outputs", "prediction", "predictions"})


def read_run(path: str | Path) -> RunFile:
    """Return the run in a ledger or a leaderboard; for any other file, raise a UsageError that describes the file.

    If a leaderboard lacks per-example records, use the ledger of the same run from the leaderboard's folder.
    """
    path = Path(path)
    ledger = _large_ledger(path)
    if ledger is not None and ledger.runs:
        return _from_ledger(path, ledger)
    data = _read(path)
    ledger = read_ledger(BytesIO(data), path, recorded_result)
    if ledger is not None and ledger.runs:
        return _from_ledger(path, ledger)
    text = _text(path, data)
    board = _parsed_or_none(text)
    if isinstance(board, dict) and "schema" in board:
        check_schema(path, board["schema"], SCHEMA)
        found = _from_board(path, board)
        return found if found.results is not None else _with_ledger(found)
    first = _parsed_or_none(text.lstrip().partition("\n")[0])
    if isinstance(first, dict) and not _OF_TASKS.isdisjoint(first) and _OF_RESULTS.isdisjoint(first):
        raise UsageError(f"{path}: a task file; expected a leaderboard.json or a ledger.jsonl that a run wrote")
    if isinstance(first, dict) and "id" in first:
        raise UsageError(
            f"{path}: a recording, which has outputs and no scores; score it with pytest --lm-adapter=replay:{path}"
        )
    raise UsageError(f"{path}: {_no_run(text)}; expected a leaderboard.json or a ledger.jsonl that a run wrote")


def ledger_at(path: Path) -> LedgerRuns[ExampleResult] | None:
    """Return the runs of a ledger, or None for any other file; do not load the text in a large ledger."""
    if large := _large_ledger(path):
        return large
    try:
        with path.open("rb") as lines:
            return read_ledger(lines, path, recorded_result)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _large_ledger(path: Path) -> LedgerRuns[ExampleResult] | None:
    """Return the runs of a large ledger without loading their text, or None for any other file."""
    try:
        if not path.is_file() or path.stat().st_size < LARGE or not is_ledger(path):
            return None
        from pytest_lmeval.records.stored import StoredLines

        lines = StoredLines(path, os.open(path, os.O_RDONLY))
        return read_ledger(lines, path, lines.result)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _with_ledger(board: RunFile) -> RunFile:
    """Return the run with the results from the ledger in the leaderboard's folder, if both are from the same run."""
    beside = board.path.with_name("ledger.jsonl")
    if not beside.is_file() or not is_ledger(beside):
        return board
    ledger = read_run(beside)
    is_same = ledger.complete and (ledger.digest, ledger.timestamp) == (board.digest, board.timestamp)
    return replace(ledger, path=board.path, board=board.board) if is_same else board


def examples_of(run: RunFile) -> tuple[ExampleResult, ...]:
    """Return a run's results; if its file has no results, raise a UsageError that explains how to get them."""
    if run.results is None:
        raise UsageError(
            f"{run.path}: a leaderboard without per-example records; name the run's ledger.jsonl instead, or write the "
            "board with --lm-include-per-example"
        )
    return run.results


def board_of(run: RunFile) -> Leaderboard:
    """Rebuild a run's leaderboard from its results, with the same digest as the recorded leaderboard."""
    return build_board(run.infos.values(), examples_of(run), run.facts, run.aggregates)


def _from_board(path: Path, board: Mapping[str, Any]) -> RunFile:
    try:
        return RunFile(
            path=path,
            kind="leaderboard",
            facts=(facts := board_facts(board)),
            complete=bool(board.get("complete")),
            infos=board_infos(board),
            results=board_results(board),
            digest=str(board.get("digest", "")),
            board={**board, "adapter_options": facts.adapter_options},
        )
    except ValueError as error:
        raise UsageError(f"{path}: not a valid leaderboard of {SCHEMA}: {error}") from None


def _from_ledger(path: Path, ledger: LedgerRuns[ExampleResult]) -> RunFile:
    last = {key: result for run in ledger.runs for key, result in run.results.items()}
    # Use the ``run`` line and footer of the last run; a run that was cut short lacks them.
    header, footer = ledger.runs[-1].header, ledger.runs[-1].footer
    run = ledger.runs[-1].run if footer else {}
    try:
        facts, infos = _facts(header, run, last.values()), _infos(run, last.values())
        aggregates = recorded_aggregates(run.get("aggregates", {}))
        is_left_out, outside = _is_left_out(run, infos, facts), Outside.of(run.get(SERVICE, {}))
    except ValueError as error:
        raise UsageError(f"{path}: not a valid ledger of {LEDGER_SCHEMA}: {error}") from None
    return RunFile(
        path=path,
        kind="ledger",
        facts=facts,
        complete=ledger.runs[-1].is_complete,
        infos=infos,
        results=tuple(result for key, result in last.items() if key[0] in infos and not is_left_out(key)),
        digest=str(footer.get("digest", "")),
        asking=str(header.get("asking", "")),
        aggregates=aggregates,
        damaged=ledger.damaged,
        first_damaged=ledger.first_damaged,
        outside=outside,
    )


def _facts(header: Mapping[str, Any], run: Mapping[str, Any], results: Iterable[ExampleResult]) -> RunFacts:
    if run:
        return facts_from(run.get("facts", {}))
    adapters = sorted({result.adapter for result in results if result.adapter})
    manifest = header.get("manifest", {})
    stated = {"timestamp": header.get("timestamp", ""), "adapter": ", ".join(adapters), "manifest": manifest}
    return facts_from({**stated, "finished": False})


def _infos(run: Mapping[str, Any], results: Iterable[ExampleResult]) -> dict[str, TaskInfo]:
    if run:
        tasks = run.get("tasks")
        if not isinstance(tasks, list):
            raise ValueError(f"run.tasks: expected a list, got {tasks!r:.80}")
        return {info.name: info for info in map(recorded_info, tasks)}
    return {result.task: TaskInfo(result.task, "", None, result.metric) for result in results}


def _is_left_out(run: Mapping[str, Any], infos: Mapping[str, TaskInfo], facts: RunFacts) -> Callable[[_Key], bool]:
    """Return a function that returns True for each (task, id) whose result the run did not count.

    A result is not counted if it is from an earlier run with other examples, or if its worker died later.
    """
    if "left_out" in run:
        try:
            return {(str(task), str(example)) for task, example in run["left_out"]}.__contains__
        except (TypeError, ValueError):
            raise ValueError(f"run.left_out: expected a list of pairs, got {run['left_out']!r:.80}") from None
    # Version 0.1.0 recorded only missing examples, named like the pytest items of a file with one task.
    missing = set(facts.missing)
    return lambda key: f"{infos[key[0]].path}::{item_name(key[1])}" in missing


def _parsed_or_none(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return None


def _no_run(text: str) -> str:
    if not text.strip():
        return "empty"
    try:
        parse_json(text)
    except ValueError as error:
        return f"not JSON: {error}"
    return "JSON, but not of a run"


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise UsageError(f"{path}: a folder; name the ledger.jsonl or the leaderboard.json in it")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; expected a leaderboard.json or a ledger.jsonl") from None
