"""Answers to examples without result, on disk: what is read back, of whom, and what is passed over."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pytest_lmeval.records.answers import FILE, Journal, KnownAnswers, exchange_record, read_journal, remove_journal
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.types import Completion, ExampleResult, Exchange, Generate


def exchange(asked: str, answer: str, repeat: int = 0) -> Exchange:
    return Exchange(Generate(asked, repeat=repeat), Completion(answer, cost=0.5))


def written(folder: Path, *asked: str, asking: str = "mine", judge: str = "") -> None:
    journal = Journal(folder, asking, Scrubber())
    for each in asked:
        journal.add("t", "a", exchange(each, f"to {each}"), "", judge)
    journal.close()


def test_answers_are_known_by_model_or_judge_and_to_runs_that_ask_alike(tmp_path: Path) -> None:
    written(tmp_path, "one", "two")
    written(tmp_path, "three", judge="judge")
    written(tmp_path, "four", asking="another model")
    found = read_journal(tmp_path, "mine")
    assert {"", "judge"} == found.keys()
    model, judge = (KnownAnswers((), name, found).of("t", "a") for name in ("", "judge"))
    taken = [model.take(Generate(asked)) for asked in ("two", "one", "three", "four", "one")]
    assert ["to two", "to one", None, None, None] == [each and each.text for each in taken]
    answer = judge.take(Generate("three"))
    assert answer is not None
    assert ("to three", 0.5) == (answer.text, answer.cost)


def test_what_a_result_holds_is_not_known_twice(tmp_path: Path) -> None:
    written(tmp_path, "one", "one", "two")
    held = exchange_record(exchange("one", "to one"))
    result = ExampleResult("t", "a", "error", None, 1.0, "turns", "hash", exchanges=(held,))
    known = KnownAnswers([result], journal=read_journal(tmp_path, "mine")).of("t", "a")
    assert [True, True, False] == [known.take(Generate("one")) is not None for _ in range(3)]
    assert known.take(Generate("two")) is not None


@pytest.mark.parametrize(
    "line",
    ["", "[]", "7", '{"asking": "mine"}', '{"asking": "mine", "task": "t", "id": "a", "judge": "", "answer": {}}'],
)
def test_a_line_that_is_none_is_passed_over(tmp_path: Path, line: str) -> None:
    written(tmp_path, "one")
    with (tmp_path / FILE).open("a") as file:
        file.write("\n" + line + '\n{"asking": "mine", "ta')
    written(tmp_path, "two")
    assert 2 == len(read_journal(tmp_path, "mine")[""]["t", "a"])


def test_lines_of_many_writers_are_not_mixed(tmp_path: Path) -> None:
    def write() -> None:
        written(tmp_path, *(f"{n} {'x' * 5000}" for n in range(50)))

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert 200 == len(read_journal(tmp_path, "mine")[""]["t", "a"])


def test_a_folder_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    written(tmp_path / "missing", "one", "two")
    assert {} == read_journal(tmp_path / "missing", "mine")
    remove_journal(tmp_path / "missing")
    written(tmp_path, "one")
    remove_journal(tmp_path)
    assert [] == os.listdir(tmp_path)
