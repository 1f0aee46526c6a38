"""What an example did, for asserts: which tools it called, how often, in which order, and in how many steps.

Each function takes ``lm.trace`` and returns a :class:`Finding`, which is true or false and says why. A step of the kind
``tool`` is a call: its name is the tool's, its input are the arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.example import as_json
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.text import printable

__all__ = ["Finding", "called", "in_order", "max_steps", "never_called"]

_CALL = "tool"
_WIDEST = 60
# An assert shows at most 240 characters of a value, and the middle is what it leaves out.
_LONGEST = 230


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """Whether something holds, as the truth of the object, and why, as its text."""

    holds: bool
    why: str

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return self.why

    __str__ = __repr__


def called(
    trace: Iterable[Step], name: str, *, times: int | None = None, arguments: Mapping[str, Any] | None = None
) -> Finding:
    """Find whether the tool ``name`` was called: at least once, or exactly ``times`` times.

    With ``arguments`` only calls count that have these, each with this value, whatever others they have besides.
    Raises UsageError for a name that is no text, ``times`` below 0, and arguments that are no JSON object.
    """
    _check_names([name])
    wanted = None if arguments is None else _wanted(arguments)
    if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 0):
        raise UsageError(f"called: times: expected a whole number from 0, got {times!r:.60}")
    calls = _calls(trace)
    found = [step for step in calls if step.name == name and _has(step, wanted)]
    what = name if arguments is None else f"{name}({_shown(arguments)})"
    holds = len(found) == times if times is not None else bool(found)
    but = "" if holds or times is None else f", not {_often(times)}"
    said = f"{what} was called {_often(len(found))}{but}" if found else f"{what} was not called{but}"
    return _finding(holds, said, calls)


def never_called(trace: Iterable[Step], *names: str) -> Finding:
    """Find whether none of the tools ``names`` was called.

    Raises UsageError without a name.
    """
    _check_names(names)
    calls = _calls(trace)
    found = [name for name in names if any(step.name == name for step in calls)]
    said = f"{_listed(found)} {_was(found)} called" if found else f"{_listed(names)} {_was(names)} not called"
    return _finding(not found, said, calls)


def in_order(trace: Iterable[Step], *names: str) -> Finding:
    """Find whether the tools ``names`` were called one after the other in this order, others between them allowed.

    A name that is there twice needs two calls. Raises UsageError without a name.
    """
    _check_names(names)
    calls = _calls(trace)
    rest = iter(calls)
    missed = next((place for place, name in enumerate(names) if not any(step.name == name for step in rest)), None)
    if missed is None:
        return _finding(True, f"{_listed(names)} {_was(names)} called in this order", calls)
    after = f" after {names[missed - 1]}" if missed else ""
    return _finding(False, f"{names[missed]} was not called{after}", calls)


def max_steps(trace: Iterable[Step], limit: int, *, kind: str | None = None) -> Finding:
    """Find whether there are at most ``limit`` steps, or steps of a kind, such as ``request`` or ``tool``.

    Raises UsageError for a limit below 0.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise UsageError(f"max_steps: expected a whole number from 0, got {limit!r:.60}")
    steps = [step for step in trace if kind is None or step.kind == kind]
    what = "step" if kind is None else f"{kind} step"
    said = f"{len(steps)} {what}{'' if len(steps) == 1 else 's'}, at most {limit} wanted"
    return Finding(len(steps) <= limit, _cut(f"{said}: {_list([step.name or step.kind for step in steps])}"))


def _calls(trace: Iterable[Step]) -> list[Step]:
    return [step for step in trace if step.kind == _CALL]


def _check_names(names: Sequence[object]) -> None:
    if not names:
        raise UsageError("expected the name of a tool; max_steps(trace, 0, kind='tool') says that none was called")
    for name in names:
        if not isinstance(name, str) or not name:
            raise UsageError(f"expected the name of a tool, each as an argument of its own, got {name!r:.60}")


def _wanted(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    # As the steps keep theirs: a tuple has become a list.
    wanted = as_json(dict(arguments))[0] if isinstance(arguments, Mapping) else None
    if not isinstance(wanted, Mapping):
        raise UsageError(f"called: arguments: expected names and JSON values, got {arguments!r:.80}")
    return wanted


def _has(step: Step, wanted: Mapping[str, Any] | None) -> bool:
    if wanted is None:
        return True
    given = _arguments(step)
    return given is not None and all(name in given and _equal(given[name], value) for name, value in wanted.items())


def _arguments(step: Step) -> Mapping[str, Any] | None:
    given = step.input
    if isinstance(given, str):
        # As models write them.
        try:
            given = json.loads(given)
        except ValueError:
            return None
    return given if isinstance(given, Mapping) else None


def _equal(one: Any, other: Any) -> bool:
    # In JSON true is not 1, whatever Python says.
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _finding(holds: bool, said: str, calls: Sequence[Step]) -> Finding:
    shown = [f"{step.name}({_shown(step.input)})" for step in calls]
    return Finding(holds, _cut(f"{said}; {f'calls: {_list(shown)}' if shown else 'no tool was called'}"))


def _list(shown: Sequence[str]) -> str:
    return ", ".join(shown)


def _shown(value: object) -> str:
    given = value if isinstance(value, str) else "" if value is None else json.dumps(as_json(value)[0])
    if isinstance(value, Mapping):
        given = given[1:-1]
    return given if len(given) <= _WIDEST else f"{given[:_WIDEST]}..."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _was(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _cut(text: str) -> str:
    shown = printable(text, keep="")
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
