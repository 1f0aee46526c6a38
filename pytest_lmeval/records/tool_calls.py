"""Read the recorded tool calls of an example, and look them up by tool, arguments and order.

The ledger stores the calls in the example's result. A call that must run only once also gets a line in
``underway.jsonl`` when it begins and when it ends, so that a resumed run does not repeat it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_lmeval.compact_json import json_key
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import CALLED, steps_of
from pytest_lmeval.numbers import is_count, is_number
from pytest_lmeval.records.answers import FILE

if TYPE_CHECKING:
    from pytest_lmeval.types import ExampleResult

TOOL, SERVER = CALLED
Place = tuple[int, str, int]
"""A call's repeat, its key, and the number of equal calls before it."""
CallsByExample = Mapping[tuple[str, str], Mapping[Place, "RecordedCall"]]
"""The recorded calls of each example, by task and id."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call with its result or ``error``; ``has_ended`` is False if the call's end was not recorded.

    If the call failed, ``output`` describes the exception.
    """

    output: object = None
    error: str = ""
    ms: float | None = None
    has_ended: bool = True


@dataclass(frozen=True, slots=True)
class KnownCalls:
    """An example's recorded calls, by repeat, key and number.

    ``source`` names a recording that must contain every call. ``all`` is False if the example failed or did not finish,
    so that the run reuses only calls that must run once.
    """

    calls: Mapping[Place, RecordedCall] = field(default_factory=dict)
    source: str = ""
    all: bool = False


def call_key(tool: str, arguments: object, within: str = "") -> str:
    """Return 32 hex digits of the SHA-256 hash of a tool's name, its arguments and ``within``, the enclosing call."""
    content = json_key([tool, arguments, *([within] if within else [])])
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:32]


def calls_in(details: Mapping[str, object]) -> dict[Place, RecordedCall]:
    """Return the tool calls in an eval function's recorded steps."""
    found: dict[Place, RecordedCall] = {}
    for repeat, steps in enumerate(steps_of(details)):
        seen: Counter[str] = Counter()
        for step in steps:
            key = step.get("key")
            if step.get("kind") in CALLED and isinstance(key, str):
                found[repeat, key, seen[key]] = _call_of(step, has_ended="ms" in step and not step.get("cancelled"))
                seen[key] += 1
    return found


def call_line(place: Place, name: str, call: RecordedCall) -> dict[str, object]:
    """Return the record of a call in ``underway.jsonl``."""
    repeat, key, number = place
    ended = {"output": call.output, "error": call.error, "ms": call.ms} if call.has_ended else {}
    return {"name": name, "repeat": repeat, "key": key, "number": number, **ended}


def read_calls(folders: Iterable[Path], asking: str) -> CallsByExample:
    """Return the calls that runs with the fingerprint ``asking`` recorded in the journals of ``folders``.

    Skip unreadable lines, such as an incomplete last line from a process that died.
    """
    found: dict[tuple[str, str], dict[Place, RecordedCall]] = defaultdict(dict)
    for folder in dict.fromkeys(folders):
        for line in _lines(folder / FILE):
            call = line.get("call")
            if line.get("asking") == asking and isinstance(call, Mapping):
                repeat, key, number = (call.get(name) for name in ("repeat", "key", "number"))
                if is_count(repeat) and isinstance(key, str) and is_count(number):
                    of_example = found[str(line.get("task")), str(line.get("id"))]
                    of_example[repeat, key, number] = _call_of(call, has_ended="error" in call)
    return found


def known_calls(journal: CallsByExample, held: ExampleResult | None, example: tuple[str, str]) -> KnownCalls:
    """Return an example's calls from the journal and from its result in the resumed run."""
    recorded = {} if held is None else calls_in(held.details)
    # The journal records call ends that are absent from the ledger.
    calls = {**recorded, **journal.get(example, {})}
    return KnownCalls(calls, all=held is not None and not held.error)


def _call_of(record: Mapping[str, object], *, has_ended: bool) -> RecordedCall:
    error, ms = record.get("error"), record.get("ms")
    took = float(ms) if is_number(ms) else None
    return RecordedCall(record.get("output"), error if isinstance(error, str) else "", took, has_ended)


def _lines(path: Path) -> Iterator[Mapping[str, object]]:
    with suppress(OSError), path.open("rb") as lines:
        for text in lines:
            # Skip the parser for other lines: most lines are models' answers.
            if b'"call":' in text:
                with suppress(ValueError, RecursionError):
                    line = json.loads(text)
                    if isinstance(line, dict):
                        yield line
