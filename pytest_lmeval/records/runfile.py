"""A finished run from its file, ledger or leaderboard: the one way in for everything that compares runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import SCHEMA, Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.board import digest as digest_of
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import board_facts, board_infos, board_results, facts_from
from pytest_lmeval.records.recorded import parse_json, recorded_aggregates, recorded_info, recorded_result
from pytest_lmeval.text import item_name
from pytest_lmeval.types import ExampleResult

__all__ = ["LEDGER_SCHEMA", "RunFile", "board_of", "examples_of", "read_run"]

LEDGER_SCHEMA = "pytest-lmeval/ledger/1"
_OURS = re.compile(r"pytest-lmeval/(leaderboard|ledger)/(\d+)")
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """What a file tells of a run.

    ``results`` holds the last result of every (task, id), or is None where a board was written without its
    per-example records. ``digest`` is the one that the file states, empty where the run did not come to its end.
    ``board`` is the JSON of a leaderboard file, None for a ledger. ``aggregates`` are, by task, what the tasks' own
    aggregations made of the results. ``damaged`` counts lines that are no JSON.
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

    @property
    def adapter(self) -> str:
        """The name of the adapter that answered."""
        return self.facts.adapter

    @property
    def adapter_options(self) -> Mapping[str, Any]:
        """The adapter's options, without secrets."""
        return self.facts.adapter_options

    @property
    def timestamp(self) -> str:
        """When the run started, RFC 3339, UTC."""
        return self.facts.timestamp

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The circumstances of the run."""
        return self.facts.manifest

    @property
    def selection(self) -> Mapping[str, Any]:
        """What was left out of the tasks; empty where nothing was."""
        return self.facts.selection

    @property
    def gate(self) -> Mapping[str, Any] | None:
        """The gate of the run as it recorded it."""
        return self.facts.gate

    @property
    def agrees(self) -> bool:
        """Whether the results give the digest that the file states; true where it states none."""
        return not self.digest or self.results is None or digest_of(self.results) == self.digest


def read_run(path: str | Path) -> RunFile:
    """Return the run that a ledger or a leaderboard holds; raise UsageError that says what the file is instead."""
    path = Path(path)
    text = _read(path)
    first = _parsed_or_none(text.lstrip().partition("\n")[0])
    if isinstance(first, dict) and isinstance(first.get("header"), dict):
        _check_schema(path, first["header"].get("schema"), "ledger")
        return _from_ledger(path, text)
    board = _parsed_or_none(text)
    if isinstance(board, dict) and "schema" in board:
        _check_schema(path, board["schema"], "leaderboard")
        return _from_board(path, board)
    if isinstance(first, dict) and "id" in first:
        raise UsageError(
            f"{path}: a recording, which has outputs and no scores; score it with pytest --lm-adapter=replay:{path}"
        )
    raise UsageError(f"{path}: {_no_run(text)}; expected a leaderboard.json or a ledger.jsonl that a run wrote")


def examples_of(run: RunFile) -> tuple[ExampleResult, ...]:
    """Return the results of a run; raise UsageError that says how to get them where the file does not hold them."""
    if run.results is None:
        raise UsageError(
            f"{run.path}: a leaderboard without per-example records; name the run's ledger.jsonl instead, or write the "
            "board with --lm-include-per-example"
        )
    return run.results


def board_of(run: RunFile) -> Leaderboard:
    """Return the board of a run, built anew from its results: of the same digest as the run's own."""
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
        raise UsageError(f"{path}: not a leaderboard as {SCHEMA} has it: {error}") from None


def _from_ledger(path: Path, text: str) -> RunFile:
    header: dict[str, Any] = {}
    run: dict[str, Any] = {}
    footer: dict[str, Any] = {}
    last: dict[_Key, ExampleResult] = {}
    damaged = 0
    for number, line in enumerate(text.split("\n"), start=1):
        record = _parsed_or_none(line) if line.strip() else {}
        if not isinstance(record, dict):
            damaged += 1
        elif "header" in record:
            # A run that was resumed has its own end, or none.
            header, run, footer = _object(record, "header", path, number), {}, {}
        elif "run" in record:
            run = _object(record, "run", path, number)
        elif "footer" in record:
            footer = _object(record, "footer", path, number)
        elif record:
            result = _result(record, path, number)
            last[result.task, result.id] = result
    try:
        facts, infos = _facts(header, run, last.values()), _infos(run, last.values())
        aggregates = recorded_aggregates(run.get("aggregates", {}))
        is_left_out = _is_left_out(run, infos, facts)
    except ValueError as error:
        raise UsageError(f"{path}: not a ledger as {LEDGER_SCHEMA} has it: {error}") from None
    return RunFile(
        path=path,
        kind="ledger",
        facts=facts,
        complete=bool(run and footer.get("complete")),
        infos=infos,
        results=tuple(result for key, result in last.items() if key[0] in infos and not is_left_out(key)),
        digest=str(footer.get("digest", "")),
        asking=str(header.get("asking", "")),
        aggregates=aggregates,
        damaged=damaged,
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
    """Return what tells the results that the run did not count.

    Those are of an earlier run that had other examples, or of examples whose worker then died.
    """
    if "left_out" in run:
        return _pairs(run["left_out"]).__contains__
    # Version 0.1.0 recorded only what was missing, by the names of the items: of a file with one task.
    missing = set(facts.missing)
    return lambda key: f"{infos[key[0]].path}::{item_name(key[1])}" in missing


def _pairs(pairs: Any) -> set[_Key]:
    try:
        return {(str(task), str(example)) for task, example in pairs}
    except (TypeError, ValueError):
        raise ValueError(f"run.left_out: expected a list of pairs, got {pairs!r:.80}") from None


def _result(record: Mapping[str, Any], path: Path, number: int) -> ExampleResult:
    try:
        return recorded_result(record)
    except ValueError as error:
        raise UsageError(f"{path}:{number}: not a result: {error}") from None


def _object(record: Mapping[str, Any], key: str, path: Path, number: int) -> dict[str, Any]:
    value = record[key]
    if not isinstance(value, dict):
        raise UsageError(f"{path}:{number}: {key}: expected an object, got {value!r:.80}")
    return value


def _check_schema(path: Path, schema: object, kind: str) -> None:
    reads = SCHEMA if kind == "leaderboard" else LEDGER_SCHEMA
    if schema == reads:
        return
    known = _OURS.fullmatch(schema) if isinstance(schema, str) else None
    if known and known[1] == kind and int(known[2]) > 1:
        raise UsageError(
            f"{path}: written by a newer version, as {schema}; this one reads {reads}: update pytest-lmeval"
        )
    raise UsageError(f"{path}: schema: expected {reads}, got {schema!r:.80}")


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
    return "JSON, but nothing that a run wrote"


def _read(path: Path) -> str:
    if path.is_dir():
        raise UsageError(f"{path}: a folder; name the ledger.jsonl or the leaderboard.json in it")
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text; expected a leaderboard.json or a ledger.jsonl") from None
