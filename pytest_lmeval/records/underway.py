"""The answers to examples that take several requests, on disk as soon as they are there.

The ledger has them with an example's result. Until then, whatever ends the process would lose what was paid for.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pytest_lmeval.records.answers import AnswersByExample, recorded_answer

FILE = "underway.jsonl"


class Underway:
    """Adds answers to ``underway.jsonl`` in a folder; all processes of a run share the file.

    ``asking`` is the fingerprint of what the answers depend on besides their requests. A file that cannot be written
    costs no result: nothing more is added to it.
    """

    def __init__(self, folder: Path, asking: str) -> None:
        self._path = folder / FILE
        self._asking = asking
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._has_failed = False

    def note(self, task: str, example: str, record: Mapping[str, Any], judge: str = "") -> None:
        """Add the record of one answer: the model's, or that of ``judge``. May be called from any thread."""
        if self._has_failed:
            return
        line = {"asking": self._asking, "task": task, "id": example, "judge": judge, "answer": record}
        # Each begins a line of its own, also behind one that a killed process left without an end. One write to a file
        # that is appended to is not mixed with those of other threads and processes.
        text = "\n" + json.dumps(line, ensure_ascii=True, separators=(",", ":"))
        try:
            with self._lock:
                self._file = self._file or self._path.open("ab", buffering=0)
            self._file.write(text.encode("ascii"))
        except (OSError, ValueError):  # ValueError: it is closed, at the end of the run
            self._has_failed = True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_underway(folder: Path, asking: str) -> Mapping[str, AnswersByExample]:
    """Return the answers in ``folder`` to runs with the fingerprint ``asking``, by the judge's name; "" is the model.

    A line that is none is passed over: what it held is asked again.
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


def remove_underway(folder: Path) -> None:
    """Remove the file: the ledger has every answer in it, or none is of use."""
    with suppress(OSError):
        (folder / FILE).unlink(missing_ok=True)
