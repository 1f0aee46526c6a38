"""Recorded answers: raw text by (task, id), from three kinds of file, and never an answer that was not recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_lmeval import (
    ReplayAdapter,
    ToyAdapter,
    UsageError,
    load_tasks,
    run_leaderboard,
    run_task,
    write_leaderboard,
)
from pytest_lmeval.asking.ask import ask
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.records.ledger import Ledger
from pytest_lmeval.records.recording import read_recording
from pytest_lmeval.types import Completion, Generate

Record = Callable[..., ReplayAdapter]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Provide a function from the lines of a recording to the adapter that answers from it."""

    def record(*lines: Any) -> ReplayAdapter:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (tmp_path / "a.replay.jsonl").write_text("\n".join(texts), encoding="utf-8")
        return ReplayAdapter(str(tmp_path / "a.replay.jsonl"))

    return record


def _answer(adapter: ReplayAdapter, task: str, example_id: str, repeat: int = 0) -> str:
    (answer,) = ask(adapter, [Generate("", task, example_id, repeat)])
    assert isinstance(answer, Completion), answer
    return answer.text


def _error(adapter: ReplayAdapter, task: str, example_id: str, repeat: int = 0) -> str:
    (answer,) = ask(adapter, [Generate("", task, example_id, repeat)])
    assert isinstance(answer, AdapterError)
    return str(answer)


def _tasks(folder: Path, **targets: list[str]) -> Path:
    folder.mkdir()
    for name, words in targets.items():
        records = [{"id": word, "prompt": f"Say {word}.", "targets": [word], "metric": "exact_match"} for word in words]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder


def _entries(path: Path) -> list[tuple[str | None, str, tuple[str, ...]]]:
    try:
        return list(read_recording(path))
    except UsageError:
        return []


# Plain JSONL


def test_answers_are_found_by_task_and_id(record: Record) -> None:
    adapter = record({"task": "x", "id": "a", "output": "1"}, {"task": "y", "id": "a", "output": "2"})
    assert ["1", "2"] == [_answer(adapter, "x", "a"), _answer(adapter, "y", "a")]


def test_an_answer_without_a_task_is_found_by_id(record: Record) -> None:
    adapter = record({"id": "a", "output": "any"}, {"task": "x", "id": "a", "output": "own"})
    assert ["own", "any"] == [_answer(adapter, "x", "a"), _answer(adapter, "y", "a")]


def test_an_example_that_is_not_held_is_an_error_never_an_empty_answer(record: Record) -> None:
    adapter = record({"task": "x", "id": "a", "output": "1"})
    assert "holds no output for 'b' of task 'x'" in _error(adapter, "x", "b")
    assert "holds no output for 'a' of task 'y'" in _error(adapter, "y", "a")


def test_repeats_are_answered_by_their_number(record: Record) -> None:
    adapter = record({"id": "a", "outputs": ["0", "1"]})
    assert ["0", "1"] == [_answer(adapter, "x", "a", repeat) for repeat in range(2)]
    assert "2 output(s), not 3" in _error(adapter, "x", "a", 2)


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"output": "o"}, "o"),
        ({"outputs": ["o"]}, "o"),
        ({"prediction": "o"}, "o"),
        ({"predictions": ["o"]}, "o"),
        ({"prediction": "cut", "output": "o"}, "o"),
        ({"predictions": ["cut"], "outputs": ["o"]}, "o"),
    ],
)
def test_prediction_is_another_word_for_output(record: Record, fields: dict[str, Any], output: str) -> None:
    assert output == _answer(record({"id": "a", **fields}), "x", "a")


def test_blank_and_comment_lines_and_a_byte_order_mark_are_skipped(record: Record) -> None:
    adapter = record('\ufeff# mine\r\n\r\n  \n{"id": "a", "output": "1"}\r\n')
    assert "1" == _answer(adapter, "x", "a")


@pytest.mark.parametrize("text", ["a\u2028b\u0085c", " raw \n", "\ud800"])
def test_the_text_is_raw(record: Record, text: str) -> None:
    assert text == _answer(record({"id": "a", "output": text}), "x", "a")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[]", "expected an object"),
        ({"output": "1"}, 'expected "id"'),
        ({"id": "a"}, "one of outputs, output, predictions, prediction; got id"),
        ({"id": True, "output": "1"}, 'expected "id"'),
        ({"id": "a", "output": 5}, "'output' must hold text"),
        ({"id": "a", "outputs": "text"}, "'outputs' must hold text"),
        ({"id": "a", "outputs": [5]}, "'outputs' must hold text"),
        ({"id": "a", "task": 5, "output": "1"}, '"task" must be a string'),
    ],
)
def test_a_bad_line_is_a_usage_error_that_names_it(record: Record, line: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        record({"id": "good", "output": "1"}, line)
    assert "a.replay.jsonl:2: " in str(caught.value)
    assert problem in str(caught.value)


def test_two_answers_for_one_example_are_a_usage_error(record: Record) -> None:
    with pytest.raises(UsageError, match="two outputs for 'a' of task 'x'"):
        record({"task": "x", "id": "a", "output": "1"}, {"task": "x", "id": "a", "output": "1"})
    with pytest.raises(UsageError, match="two outputs for '7'"):
        record({"id": "7", "output": "1"}, {"id": 7, "output": "1"})


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone: cannot be read: No such file"):
        ReplayAdapter(str(tmp_path / "gone"))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary() | st.text(st.sampled_from('{}[]":, \n\\aid01outp')).map(str.encode))
def test_any_bytes_are_a_recording_or_a_usage_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "any").write_bytes(data)
    entries = _entries(tmp_path / "any")
    assert all(isinstance(output, str) for _, _, outputs in entries for output in outputs)


# One id in two tasks


def test_an_id_that_two_selected_tasks_share_needs_a_task(record: Record) -> None:
    adapter = record({"id": "a", "output": "1"}, {"id": "b", "output": "2"})
    adapter.check_selection([("x", "a"), ("x", "b")])
    adapter.check_selection([("x", "a"), ("y", "b"), ("y", "c"), ("x", "c")])
    with pytest.raises(UsageError, match="both 'x' and 'y' have an example 'a'"):
        adapter.check_selection([("x", "a"), ("x", "b"), ("y", "a")])


def test_an_id_that_two_tasks_share_may_be_answered_for_each(record: Record) -> None:
    adapter = record({"task": "x", "id": "a", "output": "1"}, {"task": "y", "id": "a", "output": "2"})
    adapter.check_selection([("x", "a"), ("y", "a")])


def test_a_run_without_pytest_asks_for_the_task_too(tmp_path: Path, record: Record) -> None:
    tasks = load_tasks(_tasks(tmp_path / "tasks", x=["one"], y=["one"]))
    adapter = record({"id": "one", "output": "one"})
    with pytest.raises(UsageError, match="both 'x' and 'y' have an example 'one'"):
        run_leaderboard(tasks, adapter)


# Ledgers and boards


def test_a_recording_has_a_name_and_is_exact(record: Record) -> None:
    adapter = record({"id": "a", "output": "1"})
    assert ("replay:a.replay.jsonl", True) == (adapter.name, adapter.exact)


@pytest.mark.parametrize("footer", [{"digest": "d"}, None])
def test_a_ledger_is_replayed_to_the_same_digest(tmp_path: Path, footer: dict[str, str] | None) -> None:
    tasks = load_tasks(_tasks(tmp_path / "tasks", x=["one", "two"], y=["one"]))
    board = run_leaderboard(tasks, ToyAdapter())
    ledger = Ledger(tmp_path)
    ledger.open({})
    for row in board.tasks:
        for result in row.per_example:
            ledger.append(result.to_json())
    ledger.close(footer)
    assert board.digest == run_leaderboard(tasks, ReplayAdapter(str(ledger.path))).digest


def test_a_board_without_its_examples_is_a_usage_error(tmp_path: Path) -> None:
    board = run_leaderboard(load_tasks(_tasks(tmp_path / "tasks", x=["one"])), ToyAdapter())
    write_leaderboard(board, tmp_path / "board.json")
    with pytest.raises(UsageError, match="--lm-include-per-example"):
        ReplayAdapter(str(tmp_path / "board.json"))


@pytest.mark.parametrize(
    "board",
    [
        {"tasks": 5},
        {"tasks": [5]},
        {"tasks": [{"task": "x"}]},
        {"tasks": [{"per_example": []}, {"task": "x", "per_example": 5}]},
        {"tasks": [{"task": "x", "per_example": [5]}]},
        {"tasks": [{"task": "x", "per_example": [{"output": "no id"}]}]},
        {"tasks": [{"per_example": [{"id": "a", "output": 5}]}]},
    ],
)
def test_a_damaged_board_is_a_usage_error(tmp_path: Path, board: Any) -> None:
    (tmp_path / "board.json").write_text(json.dumps(board))
    with pytest.raises(UsageError, match=r"board\.json"):
        ReplayAdapter(str(tmp_path / "board.json"))


class Stubborn:
    """Answers everything but ``two``."""

    name = "stubborn"

    def generate_requests(self, requests: list[Generate]) -> list[Any]:
        return [AdapterError("no") if each.id == "two" else Completion(each.id) for each in requests]


@pytest.mark.parametrize("kind", ["ledger", "board"])
def test_an_example_that_had_no_answer_then_has_none_now(tmp_path: Path, kind: str) -> None:
    tasks = load_tasks(_tasks(tmp_path / "tasks", x=["one", "two"]))
    board = run_leaderboard(tasks, Stubborn())
    recording = tmp_path / "recording"
    if kind == "board":
        write_leaderboard(board, recording, include_per_example=True)
    else:
        recording.write_text("\n".join(result.to_json() for result in board.tasks[0].per_example))
    replayed = run_leaderboard(tasks, ReplayAdapter(str(recording)))
    assert [("one", "passed"), ("two", "error")] == [
        (result.id, result.status) for result in replayed.tasks[0].per_example
    ]
    assert board.digest == replayed.digest


def test_a_replayed_text_is_post_processed_as_any_output(tmp_path: Path, record: Record) -> None:
    fields = {"category": "mcq", "prompt": "A) x\nB) y", "metric_name": "exact_match", "post_process": "extract_letter"}
    (tmp_path / "x.jsonl").write_text(json.dumps({"task_id": "a", "targets": ["B"], **fields}))
    (task,) = load_tasks(tmp_path / "x.jsonl")
    row = run_task(task, record({"id": "a", "prediction": "I say (B)."}))
    assert (1.0, ("I say (B).",), ("B",)) == (row.score, row.per_example[0].outputs, row.per_example[0].predictions)
