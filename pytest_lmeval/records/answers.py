"""For an example with several requests, write each answer to disk immediately, and look it up by its request.

Later requests depend on earlier answers, so an answer's key is (task, id, repeat, hash of the request, number of equal
requests before it). The ledger stores the answers with the example's result. Until the example has a result,
``underway.jsonl`` holds its answers, so a process that dies loses no paid answers.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.leaderboard.details import answered_requests, is_function
from pytest_lmeval.records.checked import checked
from pytest_lmeval.records.service import OUTSIDE
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.types import Completion, ExampleResult, Exchange, Generate

FILE = "underway.jsonl"
_FIELDS = (
    *("latency_ms", "prompt_tokens", "completion_tokens", "reasoning_tokens", "cost", "confidence"),
    *("thoughts", "finish_reason", "served_by", "extra"),
)
_encode = compact_encoder(allow_nan=True)
AnswersByExample = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""Answers in the format of ``exchange_record``, by task and id."""


def exchange_record(exchange: Exchange) -> dict[str, Any]:
    """Return the ledger's record of a request and its answer."""
    known = {name: value for name in _FIELDS if (value := getattr(exchange.response, name)) not in (None, "")}
    asked = {"request": request_hash([exchange.request]), "repeat": exchange.request.repeat}
    return {**asked, "output": exchange.response.output, **known}


def recorded_answer(record: Mapping[str, Any], number: int = 0) -> Completion:
    """Return the answer in an example's ``number``-th record; raise a ValueError that names an invalid field."""
    request, output, repeat = record.get("request"), record.get("output"), record.get("repeat")
    if not isinstance(request, str) or not isinstance(output, str):
        raise ValueError(f"exchanges: expected the texts request and output, got {record!r:.80}")
    if not isinstance(repeat, int) or isinstance(repeat, bool):
        raise ValueError(f"exchanges: expected the number repeat, got {record!r:.80}")
    known = {name: record[name] for name in _FIELDS if name in record}
    try:
        return checked(Completion.of_output(output, number=number, **known))
    except ValueError as error:
        raise ValueError(f"exchanges.{error}") from None


def is_of(held: object, key: str) -> bool:
    """Return True if the adapter with ``key`` gave the answer, or if an earlier version recorded it without a key."""
    return held in ("", None, key)


class Recall:
    """The recorded answers of an example; ``take`` returns each answer once, and answers to equal requests in order."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._answers: dict[tuple[int, str], deque[Completion]] = defaultdict(deque)
        for number, record in enumerate(records):
            self._answers[record["repeat"], record["request"]].append(recorded_answer(record, number))

    def take(self, request: Generate) -> Completion | None:
        """Return the next recorded answer to an equal request in the same repeat, or None."""
        if not self._answers:
            return None
        answers = self._answers.get((request.repeat, request_hash([request])))
        return answers.popleft() if answers else None


class KnownAnswers:
    """The answers from the adapter with ``key`` in the results and ``journal`` of an earlier run.

    With ``judge``, the answers are that judge's replies to eval functions; without it, they are the model's answers.
    ``outside`` holds answers to requests that belong to no example.
    """

    def __init__(
        self,
        results: Iterable[ExampleResult] = (),
        judge: str = "",
        journal: Mapping[str, AnswersByExample] | None = None,
        key: str = "",
        outside: Sequence[Mapping[str, object]] = (),
    ) -> None:
        self._records: dict[tuple[str, str], Sequence[Mapping[str, Any]]] = {OUTSIDE: outside} if outside else {}
        for result in results:
            found: Sequence[Mapping[str, Any]] = () if judge else result.exchanges
            if is_function(result):
                found = answered_requests(result.details, "judge" if judge else "request", judge)
            if found := [record for record in found if is_of(record.get("adapter_key"), key)]:
                self._records[result.task, result.id] = found
        for example, records in (journal or {}).get(judge, {}).items():
            known = self._records.get(example, ())
            of_key = [record for record in records if is_of(record.get("adapter_key"), key)]
            self._records[example] = [*known, *without(of_key, known)]

    def of(self, task: str, example: str) -> Recall:
        """Return an example's recorded answers for one attempt at it."""
        return Recall(self._records.get((task, example), ()))


def without(records: Iterable[Mapping[str, Any]], known: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the ``records`` that are not in ``known``: the journal repeats answers that finished results contain."""
    counts = Counter((record["repeat"], record["request"]) for record in known)
    for record in records:
        counts[asked := (record["repeat"], record["request"])] -= 1
        if counts[asked] < 0:
            yield record


class Journal:
    """Appends answers to ``underway.jsonl`` in ``folder``; all processes of a run share the file.

    ``asking`` is the fingerprint of the settings that affect the answers. ``scrubber`` hides secrets. If the file
    cannot be written, the run continues without it.
    """

    def __init__(self, folder: Path, asking: str, scrubber: Scrubber) -> None:
        self._path = folder / FILE
        self._asking = asking
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._has_failed = False

    def add(self, task: str, example: str, exchange: Exchange, key: str, judge: str = "") -> None:
        """Append an answer from the model or from ``judge``, with its adapter's ``key``; thread-safe."""
        if self._has_failed:
            return
        found = self._scrubber.scrub_answer(exchange_record(exchange))
        record = {**found, **({"adapter_key": key} if key else {})}
        self._write({"asking": self._asking, "task": task, "id": example, "judge": judge, "answer": record})

    def add_call(self, task: str, example: str, call: Mapping[str, object]) -> bool:
        """Append the start or end of a tool call; return False if the file cannot be written."""
        found = self._scrubber.scrub_answer(dict(call))
        return self._write({"asking": self._asking, "task": task, "id": example, "call": found})

    def _write(self, line: Mapping[str, object]) -> bool:
        # Start a new line, because a killed process may have left an unfinished line. In append mode, a single write
        # does not mix with those of other threads and processes.
        text = "\n" + _encode(line)
        try:
            with self._lock:
                self._file = self._file or self._path.open("ab", buffering=0)
            self._file.write(text.encode("ascii"))
        except (OSError, ValueError):  # ValueError: closed at the end of the run
            self._has_failed = True
        return not self._has_failed

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_journal(folder: Path, asking: str) -> Mapping[str, AnswersByExample]:
    """Return the answers in ``folder`` for runs with the fingerprint ``asking``, by judge; the model's key is "".

    Skip unreadable lines: the run repeats their requests.
    """
    found: dict[str, dict[tuple[str, str], list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    with suppress(OSError), (folder / FILE).open("rb") as lines:
        for text in lines:
            with suppress(ValueError, TypeError, KeyError):
                line = json.loads(text)
                recorded_answer(line["answer"])
                if line["asking"] == asking:
                    found[str(line["judge"])][str(line["task"]), str(line["id"])].append(line["answer"])
    return found


def remove_journal(folder: Path) -> None:
    """Remove ``underway.jsonl`` once the ledger has its answers, or if its answers are useless."""
    with suppress(OSError):
        (folder / FILE).unlink(missing_ok=True)
