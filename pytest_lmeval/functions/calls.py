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
from pytest_lmeval.metrics.parts.call import Call
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion

_REQUEST = "request"
_MODES = ("strict", "unordered", "subset", "superset")
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


def asked_in(step: Step) -> Iterator[Call]:
    """Yield what the model asked for in its answer to a request; nothing for another step."""
    if step.kind == _REQUEST and isinstance(step.output, str):
        for call in Completion.of_output(step.output).tool_calls:
            yield Call.of(call)


def match(calls: Sequence[Any], expected: Sequence[Any], mode: str = "strict") -> Finding:
    """Find whether ``lm.calls`` are the ``expected`` ones: ``(name, arguments)`` each, or a name for any arguments.

    ``strict``: these, in this order. ``unordered``: these, in any order. ``subset``: no others, but not all of them
    need be made. ``superset``: all of them, and others may be. Arguments are compared as JSON. Raises UsageError for
    another mode, for what is no call, and for ``superset`` of nothing, which every trajectory is.
    """
    if mode not in _MODES:
        raise UsageError(f"match: mode: {not_one_of(mode, _MODES)}")
    made = [_call("calls: expected lm.calls", each) for each in _listed("calls: expected lm.calls", calls)]
    wanted = [
        Call((each, None))
        if isinstance(each, str)
        else _call("expected: expected (name, arguments) pairs or names", each)
        for each in _listed("expected", expected)
    ]
    if mode == "superset" and not wanted:
        raise UsageError("match: superset: expected at least one call; any calls are a superset of none")
    problem = _out_of_order(made, wanted) if mode == "strict" else _unpaired(made, wanted, mode)
    text = problem or f"{len(made)} call{'' if len(made) == 1 else 's'} as expected ({mode})"
    return finding(not problem, text, made)


def shown_call(call: Call) -> str:
    """Return a call as reasons have it: ``search("q": "tea")``."""
    return f"{call.name}({shown_arguments(call.arguments)})"


def finding(holds: bool, text: str, calls: Sequence[Call]) -> Finding:
    """Return what was found, with all that was called as the end of its reason."""
    shown = f"calls: {', '.join(map(shown_call, calls))}" if calls else "no tool was called"
    return Finding(holds, cut_text(f"{text}; {shown}"))


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


def _listed(wanted: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"match: {wanted}, got {given!r:.80}")
    return [*given]


def _call(wanted: str, given: Any) -> Call:
    if isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str) and given[0]:
        # As steps keep theirs: a tuple has become a list.
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
    # A name alone takes what the calls with arguments leave.
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
    return ", ".join(call.name if call[1] is None else shown_call(call) for call in calls)
