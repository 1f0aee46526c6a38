"""Answers on disk: what is kept comes back, whoever is killed, and nothing of another version is read."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.cache import _FIND, FILE, AnswerStore
from pytest_lmeval.types import Completion, LogProb, Response, ToolCall

ANSWERS = [
    Completion("yes", 3.0, "stop", 4, 2, 0.5, (-0.1, -2.0), 0.75, thoughts="hm", reasoning_tokens=1, ttft_ms=2.0),
    Completion("", tool_calls=(ToolCall("1", "search", '{"q": 1}'),)),
    LogProb(-3.0, (-1.0, -2.0), True, 5.0, (7, "x")),
]


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[sqlite3.Connection]]:
    """Close what a test opened: an open database is a warning to whatever test runs when it is collected."""
    opened: list[sqlite3.Connection] = []

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(sqlite3.Connection(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connect)
    yield opened
    for database in opened:
        database.close()


def is_open(database: sqlite3.Connection) -> bool:
    try:
        return database.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def key(number: int) -> str:
    return f"{number:064x}"


def answer_of(store: AnswerStore, number: int) -> Response | None:
    kept = store.get(key(number))
    return None if kept is None else kept.answer


def put_raw(store: AnswerStore, number: int, answer: object, asked: object = 1.0) -> None:
    store._database.execute("INSERT INTO answered VALUES (?, ?, ?, 'm')", (bytes.fromhex(key(number)), answer, asked))


def damage(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / FILE)
    database.execute(statement)
    database.close()


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_comes_back_marked_and_without_the_time_it_took(answer: Response, tmp_path: Path) -> None:
    AnswerStore(tmp_path / "deep" / "cache").put(key(1), answer)
    kept = AnswerStore(tmp_path / "deep" / "cache").get(key(1))
    assert kept is not None
    found = kept.answer
    assert (True, None) == (found.cached, found.latency_ms)
    same = {name for name in type(answer).__dataclass_fields__ if getattr(answer, name) == getattr(found, name)}
    assert set(type(answer).__dataclass_fields__) - {"cached", "latency_ms", "ttft_ms"} <= same


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    assert (None, 0, "") == (store.get(key(1)), len(store), store.failure)


WRITER = """
import sys
from pathlib import Path
from pytest_lmeval.records.cache import AnswerStore
from pytest_lmeval.types import Completion

store = AnswerStore(Path(sys.argv[1]))
number = int(sys.argv[2])
while number < int(sys.argv[3]):
    store.put(f"{number:064x}", Completion(str(number)))
    print(number, store.failure, flush=True)
    number += 1
"""


def writer(folder: Path, first: int, last: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(folder), str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_loses_nothing_that_it_had_kept(tmp_path: Path) -> None:
    process = writer(tmp_path, 0, 1 << 30)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    said += process.communicate()[0].splitlines(keepends=True)
    store = AnswerStore(tmp_path)
    kept = [int(line) for line in said if line.endswith("\n")]
    assert kept == [number for number in kept if answer_of(store, number) == Completion(str(number), cached=True)]
    store.put(key(1 << 40), Completion("goes on"))
    assert "" == store.failure
    check = sqlite3.connect(tmp_path / FILE).execute("PRAGMA integrity_check").fetchone()
    assert ("ok",) == check


def test_two_writers_share_a_cache(tmp_path: Path) -> None:
    processes = [writer(tmp_path, first, first + 100) for first in (0, 1000)]
    said = [process.communicate()[0] for process in processes]
    assert ["99 ", "1099 "] == [each.splitlines()[-1] for each in said]
    assert 200 == len(AnswerStore(tmp_path))


def test_answers_on_a_disk_that_takes_no_file_can_be_read(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(key(1), Completion("kept"))
    store.close()
    # As on a read-only disk, the file that readers share cannot be opened.
    (tmp_path / f"{FILE}-shm").symlink_to(tmp_path / "missing" / "file")
    assert Completion("kept", cached=True) == answer_of(AnswerStore(tmp_path, writes=False), 1)
    with pytest.raises(UsageError, match="unable to open database file"):
        AnswerStore(tmp_path)


@pytest.mark.parametrize(
    ("writes", "statement"), [(True, "PRAGMA user_version = 7"), (False, "PRAGMA user_version = 1"), (True, "")]
)
def test_what_is_refused_is_not_left_open(
    writes: bool, statement: str, tmp_path: Path, opened: list[sqlite3.Connection]
) -> None:
    AnswerStore(tmp_path).close()
    if statement:
        damage(tmp_path, statement)
    else:
        (tmp_path / FILE).write_text("no database at all, but long enough to be looked at as one " * 20)
    before = len(opened)
    with pytest.raises(UsageError):
        AnswerStore(tmp_path, writes=writes)
    assert [False] == [is_open(database) for database in opened[before:]]


def test_a_full_disk_ends_the_keeping_and_not_the_run(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    store.put(key(1), Completion("kept"))
    store._database.execute("PRAGMA max_page_count = 4")
    for number in range(2, 20):
        store.put(key(number), Completion("long " * 500))
    assert "database or disk is full" in store.failure
    assert Completion("kept", cached=True) == answer_of(store, 1)


DAMAGED = ['{"kind": "joke"}', "", "[]", "{", "7", b"\xff\xfe", None, '{"kind": "logprob"}', '{"kind": []}', "[" * 9999]


def test_a_row_that_cannot_be_read_is_a_miss_and_is_replaced(tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    for number, answer in enumerate(DAMAGED):
        put_raw(store, number, answer)
    assert [None] * len(DAMAGED) == [store.get(key(number)) for number in range(len(DAMAGED))]
    store.put(key(0), Completion("again"))
    assert (Completion("again", cached=True), "") == (answer_of(store, 0), store.failure)


@pytest.mark.parametrize("asked", ["yesterday", 9e99, math.inf, -1.0, -9e99, None])
def test_a_row_whose_time_is_no_time_is_a_miss_and_is_replaced(asked: object, tmp_path: Path) -> None:
    store = AnswerStore(tmp_path)
    put_raw(store, 1, '{"kind": "completion", "text": "undated"}', asked)
    assert (None, None, None) == (answer_of(store, 1), *store.stock()[0][2:])
    store.put(key(1), Completion("again"))
    assert Completion("again", cached=True) == answer_of(store, 1)


def test_answers_are_their_owners_alone(tmp_path: Path) -> None:
    AnswerStore(tmp_path / "cache").put(key(1), Completion("mine"))
    modes = {each.name: oct(each.stat().st_mode & 0o777) for each in (tmp_path / "cache").iterdir()}
    assert {"0o600"} == {*modes.values()}
    assert "0o700" == oct((tmp_path / "cache").stat().st_mode & 0o777)


@pytest.mark.parametrize(
    ("version", "table"),
    [
        (1, "answers (key BLOB PRIMARY KEY, answer TEXT)"),
        (2, "kept (key BLOB PRIMARY KEY, answer TEXT, asked REAL, adapter TEXT)"),
    ],
)
def test_answers_of_earlier_versions_are_never_used_counted_once_and_removed(
    tmp_path: Path, version: int, table: str
) -> None:
    database = sqlite3.connect(tmp_path / FILE)
    database.execute(f"CREATE TABLE {table} WITHOUT ROWID")
    values = (bytes.fromhex(key(1)), '{"kind":"completion"}')
    database.execute(f"INSERT INTO {table.split()[0]} (key, answer) VALUES (?, ?)", values)
    database.execute(f"PRAGMA user_version = {version}")
    database.commit()
    database.close()
    with pytest.raises(UsageError, match="holds no answers of this version"):
        AnswerStore(tmp_path, writes=False)
    stores = [AnswerStore(tmp_path) for _ in range(2)]
    assert ([1, 0], None, 0) == ([each.outdated for each in stores], stores[0].get(key(1)), len(stores[0]))
    assert (1, 0) == (stores[0].prune(1), stores[0].clear())


def test_an_answer_is_found_by_its_key_and_not_by_a_search_through_all(tmp_path: Path) -> None:
    plan = AnswerStore(tmp_path)._database.execute(f"EXPLAIN QUERY PLAN {_FIND}", (bytes.fromhex(key(1)),)).fetchall()
    assert ["SEARCH answered USING PRIMARY KEY (key=?)"] == [step[-1] for step in plan]
