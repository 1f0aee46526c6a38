"""What an interrupted run's ledger holds, for the run that completes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_lmeval.types import Completion, ExampleResult

__all__ = ["HeldResults", "fingerprint", "read_held"]


@dataclass(frozen=True, slots=True)
class HeldResults:
    """The last result of every example in a ledger, by (task, id); those whose model was asked as it would be now.

    ``damaged`` counts lines that could not be read: the last one, as a rule, of a process that was killed.
    """

    results: Mapping[tuple[str, str], ExampleResult] = field(default_factory=dict)
    damaged: int = 0

    def responses(self, task: str, example: str, request: str, repeats: int) -> Sequence[Completion] | None:
        """Return the responses to an example if they answer what would be asked now, else None."""
        held = self.results.get((task, example))
        if held is None or held.request != request or len(held.outputs) != repeats:
            return None
        return [Completion(text, held.latency_ms) for text in held.outputs]


def fingerprint(adapter: str, options: Mapping[str, Any], repeats: int) -> str:
    """Return a hash of what decides a model's answers besides the request; secrets in it stay secret."""
    content = json.dumps([adapter, options, repeats], sort_keys=True, default=str)
    return sha256(content.encode("utf-8", "backslashreplace")).hexdigest()


def read_held(path: Path, asking: str) -> HeldResults:
    """Return what the ledger at ``path`` holds of runs with the fingerprint ``asking``.

    A missing file holds nothing. Examples that ended in an error were not answered, and will be asked again.
    """
    results: dict[tuple[str, str], ExampleResult] = {}
    damaged, relevant = 0, False
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        if not line:
            continue
        try:
            record = json.loads(line)
            if "header" in record:
                relevant = record["header"].get("asking") == asking
            elif relevant and "footer" not in record:
                result = ExampleResult.from_json(line)
                results[result.task, result.id] = result
        except (ValueError, TypeError, KeyError, AttributeError):
            damaged += 1
    answered = {key: result for key, result in results.items() if result.outputs and not result.error}
    return HeldResults(answered, damaged)
