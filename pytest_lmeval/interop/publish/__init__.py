"""Write a run in other tools' formats for ``lmeval publish KIND``.

To add a kind, write a module with a function ``render(run, about) -> bytes``, and add it to ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.records.runfile import RunFile

__all__ = ["KINDS", "About", "Publisher", "publisher"]


@dataclass(frozen=True, slots=True)
class About:
    """Facts about a run that its ledger lacks: its model's public name, and who ran it."""

    model_id: str = ""
    organization: str = ""
    relationship: str = "other"


Publisher = Callable[[RunFile, About], bytes]
KINDS: Mapping[str, str] = {
    "eee": "a record of Every Eval Ever, schema 0.3.0: the scores of a complete run",
    "otel": "OpenTelemetry events gen_ai.evaluation.result as OTLP/JSON: one for each score of an example",
}
"""The modules of this package, each with a description of its output."""


def publisher(name: str) -> Publisher:
    """Import a kind's module, and return its function."""
    function: Publisher = import_module(f"pytest_lmeval.interop.publish.{name}").render
    return function


def epoch_seconds(run: RunFile) -> int:
    """Return a run's start in seconds since 1970, UTC; raise UsageError if the file has no valid start."""
    try:
        return int(datetime.fromisoformat(run.timestamp).timestamp())
    except ValueError:
        raise UsageError(f"{run.path}: timestamp: expected RFC 3339, got {run.timestamp!r:.80}") from None
