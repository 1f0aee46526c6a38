"""When a run began, as other formats count time."""

from __future__ import annotations

from datetime import datetime

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import RunFile


def epoch_seconds(run: RunFile) -> int:
    """Return the start of a run in seconds since 1970, UTC; raise UsageError where the file does not say it."""
    try:
        return int(datetime.fromisoformat(run.timestamp).timestamp())
    except ValueError:
        raise UsageError(f"{run.path}: timestamp: expected RFC 3339, got {run.timestamp!r:.80}") from None
