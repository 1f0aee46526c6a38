"""Record an eval function's steps, such as requests and tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.details import CALLED, shown_name, steps_of
from pytest_lmeval.numbers import sound_amounts, total_usage
from pytest_lmeval.types import COST_UNKNOWN, Completion, with_placeholder

_COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cost")
_SHOWN = 5
_WIDEST = 160


@dataclass(slots=True)
class Step:
    """One step of an example.

    ``kind`` is a word such as ``request``, ``judge`` or ``span``, or a word that the application chooses, such as
    ``tool``. ``input`` and ``output`` are JSON values. ``start_ms`` counts from the example's start. The duration
    ``ms`` is None until the step ends. ``key`` is the hash of a request, or of a call to a recorded tool. ``usage``
    contains the known ``prompt_tokens``, ``completion_tokens``, ``reasoning_tokens`` and ``cost``. ``thoughts`` is the
    text that a reasoning model writes before its answer. ``error`` explains a missing output. A ``cached`` answer comes
    from another run and costs nothing in this run. A request that the application ``cancelled`` has no answer and no
    error. If a request ``may_fail``, its failure does not mark the example as an error. For a request from an
    application's own client, ``client`` contains the requested ``model``, the ``options`` that comparisons use, and the
    names of the ``dropped`` fields. If the client is left over from another example, ``kept`` names that example. For
    ``lm.ask``, ``client`` contains only the ``model``, if the call names one. ``served_by`` is the server's name for
    the model. ``adapter_key`` distinguishes judges with the same name. ``verdict`` is a judge's verdict with its
    reason. ``extra`` contains the answer's unknown fields, which reports do not show.
    """

    kind: str
    name: str
    input: Any = None
    output: Any = None
    start_ms: float = 0.0
    ms: float | None = None
    key: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    thoughts: str = ""
    cached: bool = False
    cancelled: bool = False
    may_fail: bool = False
    client: Mapping[str, Any] = field(default_factory=dict)
    served_by: str = ""
    adapter_key: str = ""
    verdict: Mapping[str, Any] = field(default_factory=dict)
    extra: str = ""

    @property
    def is_open(self) -> bool:
        """True for a request that has no answer yet, or for a recorded call without an end."""
        return bool(self.key) and self.ms is None

    def to_json(self) -> dict[str, Any]:
        """Return the step in ledger format, without empty fields."""
        own = {"input": self.input, "output": self.output, "ms": None if self.ms is None else round(self.ms, 1)}
        others = {
            "name": self.name,
            "start_ms": round(self.start_ms, 1),
            "key": self.key,
            "usage": sound_amounts(self.usage) if self.usage else None,
            "error": self.error,
            "thoughts": self.thoughts,
            "cached": self.cached or None,
            "cancelled": self.cancelled or None,
            "client": dict(self.client),
            "served_by": self.served_by,
            "adapter_key": self.adapter_key,
            "verdict": dict(self.verdict),
            "extra": self.extra,
        }
        # 0, False and "" are outputs; only None means no output.
        known = {name: value for name, value in own.items() if value is not None}
        return {"kind": self.kind, **known, **{name: value for name, value in others.items() if value}}


def usage_of(answer: Completion) -> dict[str, float]:
    """Return an answer's known token counts and known cost."""
    return {name: amount for name in _COUNTS if (amount := getattr(answer, name)) is not None}


def usage_of_steps(steps: Iterable[Step]) -> dict[str, float]:
    """Return the usage of all steps; ignore invalid amounts set by the application."""
    steps, unknown = [*steps], 0
    total = total_usage([sound_amounts(step.usage) for step in steps if step.usage])
    for step in steps:
        is_answered = step.ms is not None and not (step.error or step.cancelled or step.cached)
        if step.key and is_answered and step.kind not in CALLED:
            unknown += "cost" not in step.usage
    return {**total, COST_UNKNOWN: unknown} if unknown and "cost" in total else total


def last_steps(details: Mapping[str, Any]) -> list[str]:
    """Describe the last steps of the last repeat for a failure message, with one line per step."""
    *_, steps = steps_of(details)
    left = len(steps) - _SHOWN
    lines = [f"({left} more before)"] if left > 0 else []
    return lines + [_line(step) for step in steps[-_SHOWN:]]


def _line(step: Mapping[str, Any]) -> str:
    from pytest_lmeval.leaderboard.explained import verdict_text

    ms = step.get("ms")
    took = f" ({ms:.0f} ms)" if isinstance(ms, int | float) else ""
    came = f"error: {step['error']}" if step.get("error") else _cut(step.get("output"))
    came = "cancelled" if step.get("cancelled") else _cut(verdict_text(step)) or came
    return f"{step.get('kind')} {shown_name(step)}{took}: {_cut(step.get('input'))} -> {came}"


def _cut(value: Any) -> str:
    if isinstance(value, Sequence) and value and isinstance(value[-1], Mapping) and "content" in value[-1]:
        value = value[-1]["content"]
        if isinstance(value, list):
            value = " ".join([str(with_placeholder(part)) for part in value])
    text = " ".join(str(value if value is not None else "").split())
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
