"""What a file with the key ``harness`` asks of the tasks that it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats.checks import gate_fields
from pytest_lmeval.formats.harness.aggregates import ITERATIONS
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
    """What holds for all tasks of a file, by its keys.

    ``data`` is a folder, ``metric`` the deciding metric of single tasks, ``examples`` what single examples tell the
    gate, by ``TASK.DOCUMENT``.
    """

    chat: str = "off"
    system: str = ""
    data: Path | None = None
    metric: Mapping[str, str] = field(default_factory=dict)
    bootstrap: int = ITERATIONS
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
        _check_key("harness", key, _KEYS)
        if not isinstance(value, _KEYS[key]):
            raise RecordRefused("bad_type", f"harness.{key}", f"expected {_KEYS[key].__name__}, got {value!r:.80}")
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
    for name, metric in given.get("metric", {}).items():
        where = f"harness.metric.{name}"
        if name not in tasks:
            hint = nearest(str(name), tasks, "expected one of")
            raise RecordRefused("bad_value", where, f"no task of this file{hint}")
        if not isinstance(metric, str):
            raise RecordRefused("bad_type", where, f"expected 'METRIC' or 'METRIC,FILTER', got {metric!r:.80}")
    for name, example in given.get("examples", {}).items():
        where = f"harness.examples.{name}"
        task, _, place = str(name).rpartition(".")
        if task not in tasks or not place.isdecimal():
            detail = f"expected TASK.NUMBER of a task of this file{nearest(task, tasks, 'there is')}"
            raise RecordRefused("bad_value", where, detail)
        if not isinstance(example, dict):
            raise RecordRefused("bad_type", where, f"expected {', '.join(_OF_EXAMPLE)}, got {example!r:.80}")
        for key in example:
            _check_key(where, key, _OF_EXAMPLE)
        gate_fields(example, where)
    return HarnessSettings(
        **{key: each for key, each in given.items() if key not in ("from", "tasks")} | {"data": data}
    )


def _check_key(where: str, key: Any, known: Iterable[str]) -> None:
    if key not in known:
        hint = nearest(str(key), known, "expected one of")
        raise RecordRefused("unknown_field", f"{where}.{key}", f"unknown key{hint}")
