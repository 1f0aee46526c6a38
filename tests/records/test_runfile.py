"""A run comes back from its file as it was, and a file that is something else is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.boards_read import board_results
from pytest_lmeval.records.recorded import parse_json, recorded_result
from pytest_lmeval.records.runfile import board_of, examples_of, read_run
from pytest_lmeval.types import RESULT_FIELDS, ExampleResult
from tests.records.run_files import (
    board_of_results,
    infos_of,
    ledger_run,
    result,
    results_of,
    write_board,
    write_ledger,
)

SCORES: dict[str, list[float | None]] = {"sums": [1.0, 0.0, 0.5, None], "words": [1.0, 1.0]}
RESULTS = [*results_of(SCORES, cluster="c"), result("words", "über\ud800", 0.0, status="failed")]
ERRORS_ALLOWED: dict[str, Any] = {"max_errors": 1}


def _refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_run(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _rewrite(path: Path, *records: Any) -> Path:
    path.write_text(
        "".join((json.dumps(record) if not isinstance(record, str) else record) + "\n" for record in records)
    )
    return path


# Ledgers


def test_a_ledger_gives_back_every_result_and_the_board_of_its_run(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, RESULTS, **ERRORS_ALLOWED)
    run = read_run(path)
    board = board_of_results(RESULTS, **ERRORS_ALLOWED)
    assert tuple(RESULTS) == run.results
    assert board.to_json(per_example=True) == board_of(run).to_json(per_example=True)
    assert ("ledger", True, True, None) == (run.kind, run.complete, run.agrees, run.board)
    assert ("stub.v1", board.facts.timestamp, board.digest) == (run.adapter, run.timestamp, run.digest)
    assert {info.name: info for info in infos_of(RESULTS)} == run.infos


def test_a_killed_run_gives_what_it_has_and_is_not_complete(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, RESULTS)
    lines = path.read_text().splitlines()
    run = read_run(_rewrite(path, *lines[:3], lines[3][:40]))
    assert (tuple(RESULTS[:2]), 1) == (run.results, run.damaged)
    assert (False, "", "stub.v1") == (run.complete, run.digest, run.adapter)
    board = board_of(run)
    assert (False, None, ["sums"]) == (board.complete, board.overall_score, [row.task for row in board.tasks])


def test_results_of_tasks_that_the_run_no_longer_had_are_left_out(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, RESULTS[:4], **ERRORS_ALLOWED)
    header, *rest = path.read_text().splitlines()
    run = read_run(_rewrite(path, header, result("gone", "a").to_json(), *rest))
    assert tuple(RESULTS[:4]) == run.results
    assert run.agrees


def test_in_a_ledger_of_version_0_1_0_an_example_whose_worker_died_after_its_line_is_missing(tmp_path: Path) -> None:
    odd = result("sums", "a b")
    path = write_ledger(tmp_path, [RESULTS[0]], missing=["tasks/sums.jsonl::a-b"])
    lines = path.read_text().splitlines()
    run = read_run(_rewrite(path, *lines[:2], odd.to_json(), *lines[2:]))
    assert (RESULTS[0],) == run.results
    assert (True, 1) == (run.agrees, board_of(run).counts["missing"])


def test_what_a_ledger_says_it_left_out_is_left_out_and_nothing_else(tmp_path: Path) -> None:
    path = write_ledger(tmp_path, RESULTS[:2], missing=["tasks/sums.jsonl::sums-0"])
    *rest, ended, footer = _lines(path)
    ended["run"]["left_out"] = [["sums", "lost"]]
    run = read_run(_rewrite(path, *rest, json.loads(result("sums", "lost").to_json()), ended, footer))
    assert tuple(RESULTS[:2]) == run.results
    assert run.agrees


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("score", 1.5, "score: expected 0 to 1"),
        ("status", "great", "status: expected one of below"),
        ("line", -1, "line: expected a count"),
    ],
)
def test_a_result_that_no_run_writes_is_refused_with_its_line_and_field(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    path = write_ledger(tmp_path, RESULTS[:1])
    header, record, *rest = _lines(path)
    refusal = _refusal(_rewrite(path, header, {**record, field: value}, *rest))
    assert refusal.startswith(f":2: not a result: {message}")


# Boards


def test_a_board_with_its_examples_gives_back_what_it_has_of_them(tmp_path: Path) -> None:
    run = read_run(write_board(tmp_path, RESULTS, **ERRORS_ALLOWED))
    ledger = ledger_run(tmp_path, SCORES, **ERRORS_ALLOWED)
    kept = ("task", "id", "status", "score", "hash", "outputs", "targets", "prompt", "threshold", "cluster", "error")

    def seen(results: tuple[ExampleResult, ...]) -> set[Any]:
        return {tuple(getattr(each, name) for name in kept) for each in results}

    assert seen(tuple(RESULTS)) == seen(examples_of(run))
    assert ("leaderboard", True, True) == (run.kind, run.complete, run.agrees)
    assert board_of_results(RESULTS).digest == board_of(run).digest
    assert ledger.infos["sums"] == run.infos["sums"]


def test_where_thresholds_differ_the_one_made_up_agrees_with_the_status(tmp_path: Path) -> None:
    graded = [result("sums", "a", 0.5, status="passed", threshold=0.5), result("sums", "b", 0.5, threshold=0.9)]
    run = read_run(write_board(tmp_path, graded))
    reached = [(each.score or 0) >= each.threshold for each in examples_of(run)]
    assert [True, False] == reached


def test_missing_examples_and_allowed_errors_come_back_from_a_board(tmp_path: Path) -> None:
    gate = {"mode": "tasks", "verdict": "incomplete", "reasons": ["no result: tasks/sums.jsonl::z"]}
    run = read_run(write_board(tmp_path, RESULTS, missing=["tasks/sums.jsonl::z"], gate=gate, max_errors=1))
    assert (("tasks/sums.jsonl::z",), False) == (run.facts.missing, board_of(run).complete)
    assert board_of(read_run(write_board(tmp_path, RESULTS, max_errors=3))).complete


def test_a_board_without_examples_is_read_and_says_how_to_get_them(tmp_path: Path) -> None:
    path = write_board(tmp_path, RESULTS, per_example=False)
    run = read_run(path)
    assert (None, True) == (run.results, run.agrees)
    with pytest.raises(UsageError, match="--lm-include-per-example"):
        examples_of(run)


def test_a_board_of_no_example_needs_no_records() -> None:
    assert () == board_results({"tasks": [{"task": "empty", "total": 0}]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": 3}, "tasks: expected a list of objects"),
        ({"tasks": [{"name": "x"}]}, "tasks[0].task: expected text"),
        ({"tasks": [{"task": "x", "per_example": [{"id": "a"}]}]}, "tasks: x: per_example[0]: hash: expected text"),
        ({"complete": "yes"}, "complete: expected true or false"),
        ({"counts": []}, "counts: expected an object"),
        ({"adapter": None}, "adapter: expected text"),
        ({"selection": []}, "selection: expected an object"),
        ({"timestamp": None}, "timestamp: expected text"),
    ],
)
def test_a_board_that_no_run_writes_is_refused_with_the_field(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = write_board(tmp_path, RESULTS)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert f": not a valid leaderboard of pytest-lmeval/leaderboard/2: {message}" in _refusal(path)


# What is no run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": empty; expected"),
        (b"not json", ": not JSON: "),
        (b'{"schema": "pytest-lmeval/leaderboard/1", "overall_score": NaN}', ": not JSON: NaN"),
        (b"[" * 100_000, ": not JSON: "),
        (b"[1, 2]", ": JSON, but not of a run"),
        (b"\xff\xfe", ": not UTF-8"),
        (b'{"header": {"schema": 7}}', ": schema: expected pytest-lmeval/ledger/2, got 7"),
        (b'{"id": "a", "output": "b"}\n{"id": "c", "output": "d"}\n', ": a recording, which has outputs"),
        (b'{"task": "t", "id": "a", "output": "b"}', ": a recording, which has outputs"),
        (
            b'{"header": {"schema": "pytest-lmeval/ledger/12"}}\n{"anything": 1}',
            ": a newer version wrote pytest-lmeval/ledger/12; this one reads pytest-lmeval/ledger/2",
        ),
    ],
)
def test_a_file_that_is_no_run_is_refused_and_told_what_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert _refusal(path).startswith(message)


# Values from outside


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(RESULT_FIELDS), json_values))
def test_whatever_stands_in_a_record_it_is_a_result_or_a_value_error(changes: dict[str, Any]) -> None:
    record = {**json.loads(RESULTS[0].to_json()), **changes}
    try:
        made = recorded_result(record)
    except ValueError:
        return
    assert ExampleResult.from_json(made.to_json()) == made


@given(st.text())
def test_any_text_is_json_or_a_value_error(text: str) -> None:
    try:
        value = parse_json(text)
    except ValueError:
        return
    assert value == json.loads(text)
