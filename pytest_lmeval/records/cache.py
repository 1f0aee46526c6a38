"""Answers kept on disk, by key: one SQLite file that runs and their workers share.

Every answer is a transaction of its own. A process that is killed loses the one it was writing, and breaks nothing.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.checked import checked
from pytest_lmeval.types import Completion, LogProb, Response, ToolCall

FILE = "answers.sqlite"
_VERSION = 1
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID"
_FIND = "SELECT answer FROM answers WHERE key = ?"
_WAIT_S = 30.0
_COMPLETION = ("text", "finish_reason", "prompt_tokens", "completion_tokens", "cost", "confidence", "thoughts")
_FIELDS = {
    Completion: (*_COMPLETION, "reasoning_tokens", "logprobs", "tool_calls"),
    LogProb: ("total", "tokens", "greedy", "ids"),
}
_KINDS = {"completion": Completion, "logprob": LogProb}


class AnswerStore:
    """The answers in a folder, made where it does not exist; ``failure`` says why no more of them are kept."""

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        """Open the store; raise UsageError where that is impossible, or another version wrote it."""
        self.path = folder / FILE
        self.failure = ""
        self._writes = writes
        self._lock = threading.Lock()
        try:
            if writes:
                folder.mkdir(parents=True, exist_ok=True)
            elif not self.path.exists():
                raise UsageError(f"cache {folder}: holds no answers; --lm-cache-mode=read-only keeps none")
            self._database = self._opened(str(self.path))
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cache {folder}: cannot be used: {error}") from None

    def __len__(self) -> int:
        """Return how many answers there are."""
        with self._lock:
            (count,) = self._database.execute("SELECT count(*) FROM answers").fetchone()
        return int(count)

    def get(self, key: str) -> Response | None:
        """Return the answer that was kept under ``key``, marked as cached; None where there is none."""
        try:
            with self._lock:
                row = self._database.execute(_FIND, (bytes.fromhex(key),)).fetchone()
            return None if row is None else checked(_answer(json.loads(row[0])))
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            self.failure = self.failure or f"{type(error).__name__}: {error}"
            return None

    def put(self, key: str, answer: Response) -> None:
        """Keep an answer under ``key``, in place of an older one. Where that fails, as on a full disk, keep no more."""
        if self.failure or not self._writes:
            return
        try:
            text = json.dumps(_record(answer), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
            with self._lock:
                self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (bytes.fromhex(key), text))
        except (sqlite3.Error, ValueError, TypeError) as error:
            self.failure = f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _opened(self, name: str, *, uri: bool = False) -> sqlite3.Connection:
        # The caller's lock is the threads'; other processes wait for each other.
        return sqlite3.connect(name, timeout=_WAIT_S, check_same_thread=False, isolation_level=None, uri=uri)

    def _version(self) -> int:
        try:
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError:
            # Readers share a file beside the answers. Where it cannot be made, as on a read-only disk, nobody writes;
            # what a killed process left in the file of its own is lost without it.
            left = self.path.with_name(f"{FILE}-wal")
            if self._writes or (left.exists() and left.stat().st_size):
                raise
            self._database.close()
            self._database = self._opened(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _prepare(self) -> None:
        version = self._version()
        if version not in (0, _VERSION):
            self._database.close()
            raise UsageError(
                f"cache {self.path.parent}: of version {version}, and this is version {_VERSION}; name another folder, "
                "or delete it"
            )
        # Readers and a writer at a time; what was committed outlives the death of a process, though not a power cut.
        self._database.execute("PRAGMA synchronous = NORMAL")
        if version == 0 and self._writes:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute(_TABLE)
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
            self._database.execute("COMMIT")


def _record(answer: Response) -> dict[str, Any]:
    kind = "completion" if isinstance(answer, Completion) else "logprob"
    fields = {name: getattr(answer, name) for name in _FIELDS[_KINDS[kind]]}
    return {"kind": kind, **{name: value for name, value in fields.items() if value not in (None, "", ())}}


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
