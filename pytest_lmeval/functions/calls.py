"""Check which tools an example called, how often, in which order, and in how many steps.

Most functions take ``lm.trace`` and return a :class:`Finding`, which is true or false and explains why. A call is
either a tool call in the model's answer, or a step of kind ``tool`` with the tool's name, and the arguments as its
input. If a step executes a call in an answer, the step and the call count as one call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import UsageError, not_one_of
from pytest_lmeval.functions.example import as_json
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.metrics.parts.call import Call
from pytest_lmeval.numbers import is_count
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion

_REQUEST, _CALL = "request", "tool"
Mode = Literal["strict", "unordered", "subset", "superset"]
"""The ways in which ``match`` compares calls."""
_WIDEST = 60
# An assert shows at most 240 characters of a value, and omits the middle.
_LONGEST = 230


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """A check's result, true or false, whose text gives the reason."""

    holds: bool
    why: str

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return self.why

    __str__ = __repr__


def as_score(value: Any, why: str) -> tuple[Any, str]:
    """Convert a finding to its truth value and ``why`` (by default, its own reason); keep any other value."""
    return (value.holds, why or value.why) if isinstance(value, Finding) else (value, why)


def asked_in(step: Step) -> Iterator[Call]:
    """Yield the calls in the model's answer if the step is a request."""
    if step.kind == _REQUEST and isinstance(step.output, str):
        for call in Completion.of_output(step.output).tool_calls:
            yield Call.of(call)


def match(calls: Sequence[Any], expected: Sequence[Any], mode: Mode = "strict") -> Finding:
    """Check ``lm.calls`` against ``expected``: each item is a pair ``(name, arguments)``, or a name for any arguments.

    ``strict`` requires exactly these calls in this order, and ``unordered`` requires exactly these calls in any order.
    ``subset`` allows only these calls, but some of them may be missing. ``superset`` requires all of these calls, and
    allows additional calls. Arguments are compared as JSON. Raises UsageError for an unknown mode, for a value that is
    not a call, and for ``superset`` without expected calls, which every trajectory would match.
    """
    if mode not in get_args(Mode):
        raise UsageError(f"match: mode: {not_one_of(mode, get_args(Mode))}")
    made = [_call("calls: expected lm.calls", each) for each in _sequence("calls: expected lm.calls", calls)]
    wanted = [
        Call((each, None))
        if isinstance(each, str)
        else _call("expected: expected (name, arguments) pairs or names", each)
        for each in _sequence("expected", expected)
    ]
    if mode == "superset" and not wanted:
        raise UsageError("match: superset: expected at least one call; any calls are a superset of none")
    problem = _out_of_order(made, wanted) if mode == "strict" else _unpaired(made, wanted, mode)
    text = problem or f"{len(made)} call{'' if len(made) == 1 else 's'} as expected ({mode})"
    return _finding(not problem, text, made)


def called(
    trace: Iterable[Step], name: str, *, times: int | None = None, arguments: Mapping[str, Any] | None = None
) -> Finding:
    """Check whether the tool ``name`` was called: at least once, or exactly ``times`` times.

    With ``arguments``, only calls with these values count; additional arguments are allowed. Raises UsageError if the
    name is not text, ``times`` is below 0, or the arguments are not a JSON object. Also raises UsageError if a step's
    arguments differ from those of the model's call, and the result depends on whether the two count as one call.
    """
    _check_names([name])
    wanted = None if arguments is None else _wanted(arguments)
    if times is not None and not is_count(times):
        raise UsageError(f"called: times: expected a whole number from 0, got {times!r:.60}")
    what = name if arguments is None else f"{name}({_shown_arguments(arguments)})"

    def decide(calls: Sequence[Call]) -> Finding:
        found = [call for call in calls if call.name == name and (wanted is None or _has(call, wanted))]
        holds = len(found) == times if times is not None else bool(found)
        but = "" if holds or times is None else f", not {_often(times)}"
        text = f"{what} was called {_often(len(found))}{but}" if found else f"{what} was not called{but}"
        return _finding(holds, text, calls)

    return _agreed(trace, decide)


def never_called(trace: Iterable[Step], *names: str) -> Finding:
    """Check that none of the tools ``names`` was called.

    Raises UsageError if no name is given.
    """
    _check_names(names)
    calls = _Calls(trace).as_one
    found = [name for name in names if any(call.name == name for call in calls)]
    text = f"{_joined(found)} {_was(found)} called" if found else f"{_joined(names)} {_was(names)} not called"
    return _finding(not found, text, calls)


def in_order(trace: Iterable[Step], *names: str) -> Finding:
    """Check that the tools ``names`` were called in this order, possibly with other calls in between.

    To require several calls to a tool, repeat its name. Raises UsageError if no name is given. Also raises UsageError
    if a step's arguments differ from those of the model's call, and the result depends on whether the two count as one
    call.
    """
    _check_names(names)

    def decide(calls: Sequence[Call]) -> Finding:
        rest = iter(calls)
        missed = next((place for place, name in enumerate(names) if not any(call.name == name for call in rest)), None)
        if missed is None:
            return _finding(True, f"{_joined(names)} {_was(names)} called in this order", calls)
        after = f" after {names[missed - 1]}" if missed else ""
        return _finding(False, f"{names[missed]} was not called{after}", calls)

    return _agreed(trace, decide)


def max_steps(trace: Iterable[Step], limit: int, *, kind: str | None = None) -> Finding:
    """Check that there are at most ``limit`` steps; count only steps of a ``kind``, such as ``tool``, if it is given.

    Raises UsageError for a limit below 0.
    """
    if not is_count(limit):
        raise UsageError(f"max_steps: expected a whole number from 0, got {limit!r:.60}")
    steps = [step for step in trace if kind is None or step.kind == kind]
    what = "step" if kind is None else f"{kind} step"
    text = f"{len(steps)} {what}{'' if len(steps) == 1 else 's'}, at most {limit} wanted"
    return Finding(len(steps) <= limit, _cut(f"{text}: {', '.join(step.name or step.kind for step in steps)}"))


def _shown_call(call: Call) -> str:
    return f"{call.name}({_shown_arguments(call.arguments)})"


def _finding(holds: bool, text: str, calls: Sequence[Call]) -> Finding:
    shown = f"calls: {', '.join(map(_shown_call, calls))}" if calls else "no tool was called"
    return Finding(holds, _cut(f"{text}; {shown}"))


def _shown_arguments(value: object) -> str:
    """Return a call's arguments as short text for a reason."""
    given = value if isinstance(value, str) else "" if value is None else json.dumps(as_json(value)[0])
    if isinstance(value, Mapping):
        given = given[1:-1]
    return given if len(given) <= _WIDEST else f"{given[:_WIDEST]}..."


def _cut(text: str) -> str:
    shown = printable(text, keep="")
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."


def _sequence(wanted: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"match: {wanted}, got {given!r:.80}")
    return [*given]


def _call(wanted: str, given: Any) -> Call:
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str) and given[0]:
        # Convert tuples to lists, as in steps.
        arguments = as_json(given[1])[0]
        if arguments is None or isinstance(arguments, str | dict):
            return Call((given[0], arguments))
    raise UsageError(f"match: {wanted}, got {given!r:.80}")


def _out_of_order(made: Sequence[Call], wanted: Sequence[Call]) -> str:
    for number, (one, other) in enumerate(zip(made, wanted, strict=False), 1):
        if not _fits(one, other):
            return f"call {number} is {_shown([one])}, not {_shown([other])}"
    if len(made) < len(wanted):
        return f"call {len(made) + 1} is missing: {_shown(wanted[len(made) :][:1])}"
    return f"call {len(wanted) + 1} is not expected: {_shown(made[len(wanted) :][:1])}" if made[len(wanted) :] else ""


def _unpaired(made: Sequence[Call], wanted: Sequence[Call], mode: str) -> str:
    left, missing = [*made], []
    # Match bare names last, with the remaining calls.
    for each in sorted(wanted, key=lambda call: call[1] is None):
        found = next((number for number, call in enumerate(left) if _fits(call, each)), None)
        if found is None:
            missing.append(each)
        else:
            del left[found]
    parts = [("not called", missing, "subset"), ("not expected", left, "superset")]
    return "; ".join(f"{what}: {_shown(calls)}" for what, calls, free in parts if calls and mode != free)


def _fits(made: Call, wanted: Call) -> bool:
    return made.name == wanted.name and (wanted[1] is None or json_equal(made[1], wanted[1]))


def _shown(calls: Sequence[Call]) -> str:
    return ", ".join(call.name if call[1] is None else _shown_call(call) for call in calls)


class _Calls:
    """The calls in a trace; a call in an answer and the step that executes this call count once.

    A step executes an earlier call to the same tool if the step has no arguments, or has the call's arguments, possibly
    with additional ones. ``doubtful`` lists pairs of a call in an answer and a later step of the same tool with other
    arguments. ``as_one`` counts each doubtful pair as one call, and ``apart`` counts it as two calls.
    """

    def __init__(self, trace: Iterable[Step]) -> None:
        found = [call for step in trace for call in _calls_of(step)]
        self._calls = [call for call, _ in found]
        self._steps = [number for number, (_, is_asked) in enumerate(found) if not is_asked]
        self._asked: dict[str, list[int]] = {}
        for number, (call, is_asked) in enumerate(found):
            if is_asked:
                self._asked.setdefault(call.name, []).append(number)
        # Maps a step to the call that it executes.
        self._pairs: dict[int, int] = {}
        self._pair(_is_same)
        # The application may have added arguments, or recorded no arguments.
        self._pair(_is_within)
        certain = dict(self._pairs)
        self._pair(lambda asked, step: True)
        in_doubt = sorted(self._pairs.keys() - certain)
        self.doubtful = [(self._calls[self._pairs[step]], self._calls[step]) for step in in_doubt]
        self.as_one = self._each_once(self._pairs)
        self.apart = self._each_once(certain)

    def _pair(self, fits: Callable[[Call, Call], bool]) -> None:
        for number in self._steps:
            step = self._calls[number]
            left = self._asked.get(step.name, [])
            asked = (each for each in left if each < number and fits(self._calls[each], step))
            if number not in self._pairs and (found := next(asked, None)) is not None:
                self._pairs[number] = found
                left.remove(found)

    def _each_once(self, pairs: Mapping[int, int]) -> list[Call]:
        carried_out = set(pairs.values())
        kept = [(number, call) for number, call in enumerate(self._calls) if number not in carried_out]
        # A step without arguments takes the arguments of the call that it executes.
        return [
            self._calls[pairs[number]] if number in pairs and call.values is None else call for number, call in kept
        ]


def _calls_of(step: Step) -> Iterator[tuple[Call, bool]]:
    """Yield a step's calls, each with True if the model requested it, or False if the application made it."""
    if step.kind == _CALL:
        # Empty text means unknown arguments.
        yield Call((step.name, None if step.input == "" else step.input)), False
    yield from ((call, True) for call in asked_in(step))


def _is_same(asked: Call, step: Call) -> bool:
    one, other = asked.values, step.values
    return asked.arguments == step.arguments if one is None or other is None else json_equal(one, other)


def _is_within(asked: Call, step: Call) -> bool:
    one, other = asked.values, step.values
    return other is None or (one is not None and _has(step, one))


def _agreed(trace: Iterable[Step], decide: Callable[[Sequence[Call]], Finding]) -> Finding:
    calls = _Calls(trace)
    found = decide(calls.as_one)
    if calls.doubtful and bool(decide(calls.apart)) != bool(found):
        asked, step = calls.doubtful[0]
        raise UsageError(
            f"the model asked for {_shown_call(asked)}, and a step says {_shown_call(step)}: one call or two?"
            " Record the step with the model's arguments, or under another name; or check the steps alone:"
            " [step for step in lm.trace if step.kind == 'tool']"
        )
    return found


def _check_names(names: Sequence[object]) -> None:
    if not names:
        raise UsageError("expected the name of a tool")
    for name in names:
        if not isinstance(name, str) or not name:
            raise UsageError(f"expected the name of a tool, each as an argument of its own, got {name!r:.60}")


def _wanted(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    # Convert tuples to lists, as in steps.
    wanted = as_json(dict(arguments))[0] if isinstance(arguments, Mapping) else None
    if not isinstance(wanted, Mapping):
        raise UsageError(f"called: arguments: expected names and JSON values, got {arguments!r:.80}")
    return wanted


def _has(call: Call, wanted: Mapping[str, Any]) -> bool:
    given = call.values
    return given is not None and all(name in given and json_equal(given[name], value) for name, value in wanted.items())


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _was(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"
