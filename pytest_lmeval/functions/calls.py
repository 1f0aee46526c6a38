"""The calls of tools that a model asked for in an example, and whether they are those that are expected."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import UsageError, not_one_of
from pytest_lmeval.functions.example import as_json
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion

_REQUEST = "request"
_MODES = ("strict", "unordered", "subset", "superset")
_WIDEST = 60
# An assert shows at most 240 characters of a value, and the middle is what it leaves out.
_LONGEST = 230


class Call(tuple[str, Any]):
    """A call that a model asked for: the pair of name and arguments, and shown as one where an assert compares it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self[0]

    @property
    def arguments(self) -> dict[str, Any] | str:
        """The arguments by their names; the text that the model wrote where that is no JSON object."""
        found: dict[str, Any] | str = self[1]
        return found


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


def asked_in(step: Step) -> Iterator[Call]:
    """Yield what the model asked for in its answer to a request; nothing for another step."""
    if step.kind == _REQUEST and isinstance(step.output, str):
        for call in Completion.of_output(step.output).tool_calls:
            values = call.values
            yield Call((call.name, call.arguments if values is None else values))


def match(calls: Sequence[Any], expected: Sequence[Any], mode: str = "strict") -> Finding:
    """Find whether ``lm.calls`` are the ``expected`` ones: ``(name, arguments)`` each, or a name for any arguments.

    ``strict``: these, in this order. ``unordered``: these, in any order. ``subset``: no others, but not all of them
    need be made. ``superset``: all of them, and others may be. Arguments are compared as JSON. Raises UsageError for
    another mode, for what is no call, and for ``superset`` of nothing, which every trajectory is.
    """
    if mode not in _MODES:
        raise UsageError(f"match: mode: {not_one_of(mode, _MODES)}")
    made = _calls("calls: expected lm.calls", calls)
    wanted = [(each, None) if isinstance(each, str) else each for each in _sequence("expected", expected)]
    wanted = _calls("expected: expected (name, arguments) pairs or names", wanted)
    if mode == "superset" and not wanted:
        raise UsageError("match: superset: expected at least one call; any calls are a superset of none")
    problem = _out_of_order(made, wanted) if mode == "strict" else _unpaired(made, wanted, mode)
    shown = f"calls: {', '.join(map(shown_call, made))}" if made else "no tool was called"
    text = problem or f"{len(made)} call{'' if len(made) == 1 else 's'} as expected ({mode})"
    return Finding(not problem, cut_text(f"{text}; {shown}"))


def shown_call(call: Sequence[Any]) -> str:
    """Return a call as reasons have it: ``search("q": "tea")``; without arguments that are known its name."""
    name, arguments = call
    return name if arguments is None else f"{name}({shown_arguments(arguments)})"


def shown_arguments(value: object) -> str:
    """Return the arguments of a call as reasons have them, a text as it is; what is long is cut."""
    given = value if isinstance(value, str) else "" if value is None else json.dumps(as_json(value)[0])
    if isinstance(value, Mapping):
        given = given[1:-1]
    return given if len(given) <= _WIDEST else f"{given[:_WIDEST]}..."


def cut_text(text: str) -> str:
    """Return what an assert shows of ``text``."""
    shown = printable(text, keep="")
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."


def _calls(wanted: str, given: Any) -> list[tuple[str, Any]]:
    return [_call(wanted, each) for each in _sequence(wanted, given)]


def _sequence(wanted: str, given: Any) -> Sequence[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"match: {wanted}, got {given!r:.80}")
    return [*given]


def _call(wanted: str, given: Any) -> tuple[str, Any]:
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str) and given[0]:
        # As steps keep theirs: a tuple has become a list.
        arguments = as_json(given[1])[0]
        if arguments is None or isinstance(arguments, str | dict):
            return given[0], arguments
    raise UsageError(f"match: {wanted}, got {given!r:.80}")


def _out_of_order(made: Sequence[tuple[str, Any]], wanted: Sequence[tuple[str, Any]]) -> str:
    for number, (one, other) in enumerate(zip(made, wanted, strict=False), 1):
        if not _fits(one, other):
            return f"call {number} is {shown_call(one)}, not {shown_call(other)}"
    if len(made) < len(wanted):
        return f"call {len(made) + 1} is missing: {shown_call(wanted[len(made)])}"
    return f"call {len(wanted) + 1} is not expected: {shown_call(made[len(wanted)])}" if len(made) > len(wanted) else ""


def _unpaired(made: Sequence[tuple[str, Any]], wanted: Sequence[tuple[str, Any]], mode: str) -> str:
    left, missing = [*made], []
    # A name alone takes what the calls with arguments leave.
    for each in sorted(wanted, key=lambda call: call[1] is None):
        found = next((number for number, call in enumerate(left) if _fits(call, each)), None)
        if found is None:
            missing.append(each)
        else:
            del left[found]
    parts = [("not called: ", missing, "subset"), ("not expected: ", left, "superset")]
    faults = [name + ", ".join(map(shown_call, calls)) for name, calls, free in parts if calls and mode != free]
    return "; ".join(faults)


def _fits(made: tuple[str, Any], wanted: tuple[str, Any]) -> bool:
    return made[0] == wanted[0] and (wanted[1] is None or json_equal(made[1], wanted[1]))
