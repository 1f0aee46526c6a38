"""Write examples' scores as ``gen_ai.evaluation.result`` events, in OTLP's JSON for logs.

The names follow OpenTelemetry's GenAI conventions; names that begin with ``lmeval.`` belong to this package. The events
omit prompts and outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_lmeval import __version__
from pytest_lmeval.interop.publish import About, epoch_seconds
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.types import UNSCORED, ExampleResult

EVENT = "gen_ai.evaluation.result"
_LABELS = {"passed": "pass", "failed": "fail", "below": "fail"}


def render(run: RunFile, about: About) -> bytes:
    """Return one export request on a line, as a collector's ``otlpjsonfile`` receiver reads it.

    A scored example yields an event for its score and an event for each further metric; an unscored example yields an
    event with ``error.type``. Examples that were excluded on purpose or are in quarantine yield no event.
    """
    model = about.model_id or run.adapter
    time = str(epoch_seconds(run) * 10**9)
    records = [
        {"timeUnixNano": time, "observedTimeUnixNano": time, "eventName": EVENT, "attributes": _attributes(event)}
        for result in examples_of(run)
        for event in _events(result, model)
    ]
    resource = {"attributes": _attributes({"service.name": "pytest-lmeval", "service.version": __version__})}
    scope = {"name": "pytest_lmeval", "version": __version__}
    request = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": records}]}]}
    return (json.dumps(request, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")


def _events(result: ExampleResult, model: str) -> Iterator[dict[str, str | float]]:
    about = {"gen_ai.request.model": model, "lmeval.task": result.task, "lmeval.example": result.id}
    if result.status in UNSCORED:
        yield {"gen_ai.evaluation.name": result.metric, "error.type": result.status, **about}
    elif result.score is not None and result.status in _LABELS:
        label = {"gen_ai.evaluation.score.label": _LABELS[result.status]}
        yield {"gen_ai.evaluation.name": result.metric, "gen_ai.evaluation.score.value": result.score, **label, **about}
        for name, value in result.metrics.items():
            if name != result.metric:
                yield {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value, **about}


def _attributes(values: Mapping[str, str | float]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"doubleValue": float(value)}}
        for key, value in values.items()
    ]
