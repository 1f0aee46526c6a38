"""What a file with the key ``harness`` asks of the tasks that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats.checks import gate_fields
from pytest_lmeval.frozen import dataclass

_KEYS: Mapping[str, type] = {
    **dict.fromkeys(("from", "chat", "system", "data"), str),
    "tasks": list,
    "metric": dict,
    "bootstrap": int,
    "examples": dict,
}
_CHATS = ("off", "multiturn", "single")
_OF_EXAMPLE = ("quarantine", "must_pass", "cluster")


@dataclass(frozen=True, slots=True)
class HarnessSettings:
    """What holds for all tasks of a file.

    ``data`` is a folder, ``metrics`` has the deciding metric of single tasks, ``examples`` what single examples tell
    the gate, by ``TASK.DOCUMENT``.
    """

    chat: str = "off"
    system: str = ""
    data: Path | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    iterations: int = 100_000
    examples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of_examples(self, task: str) -> dict[int, Mapping[str, Any]]:
        """Return what the examples of ``task`` tell the gate, by their places."""
        named = ((name.rpartition("."), given) for name, given in self.examples.items())
        return {int(place): given for (of, _, place), given in named if of == task}


def given_settings(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value of the key ``harness``; raise RecordRefused for what is unknown, or of a wrong type."""
    given = document["harness"]
    given = {"tasks": given} if isinstance(given, list) else given
    other = next((key for key in document if key != "harness"), None)
    if other is not None:
        raise RecordRefused("unknown_field", str(other), "such a file has no key beside 'harness'")
    if not isinstance(given, dict) or not isinstance(given.get("tasks"), list) or not given["tasks"]:
        raise RecordRefused("missing_required", "harness", "expected a list tasks")
    for key, value in given.items():
        if key not in _KEYS:
            hint = nearest(str(key), _KEYS, "expected one of")
            raise RecordRefused("unknown_field", f"harness.{key}", f"unknown key{hint}")
        if not isinstance(value, _KEYS[key]):
            detail = f"expected {_KEYS[key].__name__}, got {value!r:.80}"
            raise RecordRefused("bad_type", f"harness.{key}", detail)
    if isinstance(given.get("bootstrap"), bool) or given.get("bootstrap", 0) < 0:
        raise RecordRefused("bad_value", "harness.bootstrap", f"expected a number from 0, got {given['bootstrap']!r}")
    if given.get("chat", "off") not in _CHATS:
        raise RecordRefused("bad_value", "harness.chat", f"{given['chat']!r}; one of {', '.join(_CHATS)}")
    return given


def settings_of(given: Mapping[str, Any], folder: Path, tasks: Iterable[str]) -> HarnessSettings:
    """Return the settings that a file in ``folder`` gives to ``tasks``; raise RecordRefused for others' names."""
    data = folder / given["data"] if "data" in given else None
    if data is not None and not data.is_dir():
        raise RecordRefused("bad_value", "harness.data", f"{given['data']}: no such folder beside this file")
    metrics, examples = given.get("metric", {}), given.get("examples", {})
    _check_metrics(metrics, tasks)
    _check_examples(examples, tasks)
    iterations = given.get("bootstrap", 100_000)
    return HarnessSettings(given.get("chat", "off"), given.get("system", ""), data, metrics, iterations, examples)


def _check_metrics(metrics: Mapping[str, Any], tasks: Iterable[str]) -> None:
    for name, metric in metrics.items():
        if name not in tasks:
            hint = nearest(str(name), tasks, "expected one of")
            raise RecordRefused("bad_value", f"harness.metric.{name}", f"no task of this file{hint}")
        if not isinstance(metric, str):
            detail = f"expected 'METRIC' or 'METRIC,FILTER', got {metric!r:.80}"
            raise RecordRefused("bad_type", f"harness.metric.{name}", detail)


def _check_examples(examples: Mapping[str, Any], tasks: Iterable[str]) -> None:
    for name, given in examples.items():
        where = f"harness.examples.{name}"
        task, _, place = str(name).rpartition(".")
        if task not in tasks or not place.isdecimal():
            detail = f"expected TASK.NUMBER of a task of this file{nearest(task, tasks, 'there is')}"
            raise RecordRefused("bad_value", where, detail)
        if not isinstance(given, dict):
            raise RecordRefused("bad_type", where, f"expected {', '.join(_OF_EXAMPLE)}, got {given!r:.80}")
        if unknown := next((key for key in given if key not in _OF_EXAMPLE), None):
            hint = nearest(str(unknown), _OF_EXAMPLE, "expected one of")
            raise RecordRefused("unknown_field", f"{where}.{unknown}", f"unknown key{hint}")
        gate_fields(given, where)
