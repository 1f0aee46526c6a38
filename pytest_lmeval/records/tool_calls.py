"""Read and look up the recorded calls of an example's tools, by tool, arguments and order.

The ledger has the calls in the example's result. A call that must run only once is also written to ``underway.jsonl``
when it begins and when it ends, so that a resumed run does not repeat it.
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
"""A call's repeat, key, and number among equal calls before it."""
CallsByExample = Mapping[tuple[str, str], Mapping[Place, "RecordedCall"]]
"""Recorded calls by task and id."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a tool, with its result or its ``error``; without ``has_ended``, the call has only begun.

    The ``output`` of a failed call describes the exception.
    """

    output: object = None
    error: str = ""
    ms: float | None = None
    has_ended: bool = True


@dataclass(frozen=True, slots=True)
class KnownCalls:
    """The recorded calls of an example, by place.

    ``source`` names a recording that must have every call. ``all`` is False if the example had not finished, so that
    only calls that must run once are reused.
    """

    calls: Mapping[Place, RecordedCall] = field(default_factory=dict)
    source: str = ""
    all: bool = False


def call_key(tool: str, arguments: object, within: str = "") -> str:
    """Return a SHA-256 of a tool's name and arguments; ``within`` is the place of the call that makes this call."""
    content = json_key([tool, arguments, *([within] if within else [])])
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:32]


def calls_in(details: Mapping[str, object]) -> dict[Place, RecordedCall]:
    """Return the calls in an eval function's recorded steps."""
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
    """Return the calls in the journals of ``folders`` for runs with the fingerprint ``asking``.

    Skip lines that cannot be read. The last line may be incomplete, and the call in it has then not begun.
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
    """Return the calls of an example from the journal and from the result that a run resumes."""
    recorded = {} if held is None else calls_in(held.details)
    # The journal has the ends of calls that a ledger lacks.
    calls = {**recorded, **journal.get(example, {})}
    return KnownCalls(calls, all=held is not None and not held.error)


def _call_of(record: Mapping[str, object], *, has_ended: bool) -> RecordedCall:
    error, ms = record.get("error"), record.get("ms")
    took = float(ms) if is_number(ms) else None
    return RecordedCall(record.get("output"), error if isinstance(error, str) else "", took, has_ended)


def _lines(path: Path) -> Iterator[Mapping[str, object]]:
    with suppress(OSError), path.open("rb") as lines:
        for text in lines:
            # Most lines are answers of models.
            if b'"call":' in text:
                with suppress(ValueError, RecursionError):
                    line = json.loads(text)
                    if isinstance(line, dict):
                        yield line
