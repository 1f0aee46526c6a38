"""A run for other tools: ``lmeval publish KIND``.

A new kind is a module with a function ``render(run, about) -> bytes``, and its entry in ``KINDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.records.runfile import RunFile

__all__ = ["KINDS", "About", "Publisher", "publisher"]


@dataclass(frozen=True, slots=True)
class About:
    """What a ledger does not say of a run: its model's name for others, and who ran it."""

    model_id: str = ""
    organization: str = ""
    relationship: str = "other"


Publisher = Callable[[RunFile, About], bytes]
KINDS: Mapping[str, str] = MappingProxyType(
    {
        "eee": "a record of Every Eval Ever, schema 0.3.0: the scores of a complete run",
        "otel": "OpenTelemetry events gen_ai.evaluation.result as OTLP/JSON: one for each score of an example",
    }
)
"""The modules of this package by what they write."""


def publisher(name: str) -> Publisher:
    """Return the function of a kind, which is imported when it is asked for."""
    function: Publisher = import_module(f"pytest_lmeval.interop.publish.{name}").render
    return function
