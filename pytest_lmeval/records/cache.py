"""Store answers by key in one SQLite file that runs and their workers share.

Each answer is one transaction, so a killed process loses only the answer that it was writing.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.checked import checked
from pytest_lmeval.types import Completion, LogProb, Response, ToolCall

FILE = "answers.sqlite"
_VERSION = 3
# Earlier versions' tables are not used: version 1's keys confuse some adapters, and version 2's keys depend on
# unrelated imports.
_EARLIER = ("answers", "kept")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answered (key BLOB PRIMARY KEY, answer TEXT, asked REAL, adapter TEXT) WITHOUT ROWID"
)
# Read the answer as bytes, because a damaged row may not be UTF-8.
_FIND = "SELECT CAST(answer AS BLOB), asked FROM answered WHERE key = ?"
_LATEST_S = 253_402_300_799
"""The end of the year 9999; a row is damaged if its time is later, or is before 1970."""
_TIME = f"CASE WHEN asked BETWEEN 0 AND {_LATEST_S} THEN asked END"
_LIST = f"SELECT adapter, count(*), min({_TIME}), max({_TIME}) FROM answered GROUP BY adapter ORDER BY adapter"
_WAIT_S = 30.0
_AGAIN_S = 0.01
_DAY_S = 86400.0
_KINDS = {"completion": Completion, "logprob": LogProb}
_NOT_KEPT = frozenset({"latency_ms", "ttft_ms", "cached", "retries", "exchanges"})
_FIELDS = {kind: [each.name for each in fields(kind) if each.name not in _NOT_KEPT] for kind in _KINDS.values()}


class Kept(NamedTuple):
    """A stored answer, marked as cached, and the time of its request in seconds since 1970."""

    answer: Response
    asked: float


class Stock(NamedTuple):
    """The number of an adapter's answers, and the times of its oldest and newest requests, if known."""

    adapter: str
    answers: int
    oldest: float | None
    newest: float | None


class AnswerStore:
    """The stored answers in a folder; ``failure`` is the reason why the store accepts no more answers, or "".

    ``outdated`` is the number of answers from older versions, if this store is the first to find them.
    """

    def __init__(self, folder: Path, *, writes: bool = True, must_exist: bool = False) -> None:
        """Open the store, or create it; raise UsageError if that fails or a newer version wrote the file."""
        self.path = folder / FILE
        self.failure = ""
        self.outdated = 0
        self._writes = writes
        self._lock = threading.Lock()
        try:
            if not self.path.exists():
                self._make(must_exist=must_exist)
            self._database = self._opened(str(self.path))
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cache {folder}: cannot be used: {error}") from None

    def __len__(self) -> int:
        """Return the number of stored answers."""
        return sum(each.answers for each in self.stock())

    def stock(self) -> list[Stock]:
        """Return the count and times of each adapter's answers; raise UsageError if the file cannot be read."""
        try:
            with self._lock:
                return [Stock(*row) for row in self._database.execute(_LIST)]
        except sqlite3.Error as error:
            raise UsageError(f"cache {self.path.parent}: cannot be read: {error}") from None

    def get(self, key: str) -> Kept | None:
        """Return the answer for ``key``, or None if it is missing or unreadable."""
        try:
            with self._lock:
                row = self._database.execute(_FIND, (bytes.fromhex(key),)).fetchone()
        except sqlite3.Error as error:
            self.failure = self.failure or f"{type(error).__name__}: {error}"
            return None
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            if row is not None and 0 <= (asked := float(row[1])) <= _LATEST_S:
                return Kept(checked(_answer(json.loads(row[0]))), asked)
        return None

    def put(self, key: str, answer: Response, adapter: str = "") -> None:
        """Store an answer for ``key``, replacing an older answer; do nothing after a failure, such as a full disk."""
        if self.failure or not self._writes:
            return
        try:
            text = json.dumps(_record(answer), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
            row = (bytes.fromhex(key), text, time.time(), adapter.encode("utf-8", "replace").decode())
            with self._lock:
                self._database.execute("INSERT OR REPLACE INTO answered VALUES (?, ?, ?, ?)", row)
        except (sqlite3.Error, ValueError, TypeError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def prune(self, older_than_days: float) -> int:
        """Remove answers older than ``older_than_days``, and answers from older versions; return the number removed."""
        return self._remove("DELETE FROM answered WHERE asked < ?", (time.time() - older_than_days * _DAY_S,))

    def clear(self) -> int:
        """Remove all answers; return the number removed."""
        return self._remove("DELETE FROM answered")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _remove(self, delete: str, values: Sequence[float] = ()) -> int:
        try:
            with self._lock:
                removed = self._database.execute(delete, values).rowcount + self._older()
                for table in _EARLIER:
                    self._database.execute(f"DROP TABLE IF EXISTS {table}")
                self._database.execute("VACUUM")
        except sqlite3.Error as error:
            raise UsageError(f"cache {self.path.parent}: cannot be changed: {error}") from None
        return removed

    def _make(self, *, must_exist: bool) -> None:
        if not self._writes or must_exist:
            also = "" if must_exist else "; --lm-cache-mode=read-only keeps none"
            raise UsageError(f"cache {self.path.parent}: holds no answers{also}")
        # Answers are private: SQLite gives its other files the same mode as this file.
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))

    def _opened(self, name: str, *, uri: bool = False) -> sqlite3.Connection:
        # ``self._lock`` serializes the threads of this process, and SQLite makes processes wait for each other.
        return sqlite3.connect(name, timeout=_WAIT_S, check_same_thread=False, isolation_level=None, uri=uri)

    def _version(self) -> int:
        try:
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError:
            # Readers share a second file. If SQLite cannot create that file, for example on a read-only disk, open the
            # database as immutable, unless a killed process left a log: the answers in the log would be lost.
            left = self.path.with_name(f"{FILE}-wal")
            if self._writes or (left.exists() and left.stat().st_size):
                raise
            self._database.close()
            self._database = self._opened(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _older(self) -> int:
        names = [name for (name,) in self._database.execute("SELECT name FROM sqlite_master")]
        tables = [table for table in _EARLIER if table in names]
        return sum(int(self._database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables)

    def _prepare(self) -> None:
        version = self._version()
        if not 0 <= version <= _VERSION:
            raise UsageError(
                f"cache {self.path.parent}: of version {version}, and this is version {_VERSION}; name another folder, "
                "or delete it"
            )
        # Commits survive a killed process, but not a power cut.
        self._database.execute("PRAGMA synchronous = NORMAL")
        if version < _VERSION:
            self._renew()

    def _renew(self) -> None:
        if not self._writes:
            raise UsageError(f"cache {self.path.parent}: holds no answers of this version; --lm-cache-mode=use asks")
        self._set_journal_mode()
        self._database.execute("BEGIN IMMEDIATE")
        # If another process was first to find the outdated answers, that process reports them.
        if self._version() < _VERSION:
            self.outdated = self._older()
            self._database.execute(_TABLE)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
        self._database.execute("COMMIT")

    def _set_journal_mode(self) -> None:
        # SQLite fails at once if another process makes this change at the same moment.
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(_AGAIN_S)


def _record(answer: Response) -> dict[str, Any]:
    kind = "completion" if isinstance(answer, Completion) else "logprob"
    known = {name: getattr(answer, name) for name in _FIELDS[_KINDS[kind]]}
    return {"kind": kind, **{name: value for name, value in known.items() if value not in (None, "", ())}}


def _answer(record: dict[str, Any]) -> Response:
    kind = _KINDS[record.pop("kind")]
    known = {name: record[name] for name in _FIELDS[kind] if name in record}
    for name in ("logprobs", "tokens", "ids"):
        if name in known:
            known[name] = tuple(known[name])
    if "tool_calls" in known:
        known["tool_calls"] = tuple(ToolCall(*call) for call in known["tool_calls"])
    if kind is Completion:
        return Completion(known.pop("text", ""), cached=True, **known)
    return LogProb(known.pop("total"), cached=True, **known)
