"""Define the filters of templates, and limits on steps, characters, memory and time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from jinja2 import pass_context
from jinja2.exceptions import UndefinedError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import Context, Undefined

MEMORY, BUDGET = " memory", " budget"
"""The variables for the memory budget of an example and the budget of a rendering; no template can write their
names."""

MAX_STEPS = 100_000
MAX_CHARS = 4 << 20
MAX_ELEMENTS = 200_000
MAX_SECONDS = 5.0
MAX_BYTES = 64 << 20
_ELEMENT_BYTES = 50
_WIDEST_CHARACTER = 4


class LimitReached(Exception):
    """A template exceeded a limit."""


@dataclass(slots=True)
class MemoryBudget:
    """The remaining memory for the values that an example's templates create."""

    bytes: int = MAX_BYTES

    def take(self, size: int) -> None:
        """Subtract the size of a value in bytes; raise LimitReached if the memory is used up."""
        self.bytes -= size
        if self.bytes < 0:
            raise LimitReached(f"more than {MAX_BYTES >> 20} MiB of text and lists in the templates of one example")


@dataclass(slots=True)
class RenderBudget:
    """The remaining limits of one rendering; the limit on steps stops a template at the same place in each run."""

    memory: MemoryBudget = field(default_factory=MemoryBudget)
    steps: int = MAX_STEPS
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)
    writes_null: bool = False

    def step(self) -> None:
        """Count one iteration, call or operation; raise LimitReached if steps or time are used up."""
        self.steps -= 1
        if self.steps < 0:
            raise LimitReached(f"more than {MAX_STEPS:,} steps")
        if time.monotonic() > self.deadline:
            raise LimitReached(f"more than {MAX_SECONDS:g} seconds")

    def made(self, value: Any) -> Any:
        """Count the memory of a new value, but not of the values in it; return the value."""
        if isinstance(value, str):
            self.memory.take(_text_bytes(value))
        elif isinstance(value, Mapping | list | tuple):
            self.memory.take(_ELEMENT_BYTES * len(value))
        return value

    def made_throughout(self, value: Any) -> Any:
        """Count the memory of a new value and of all values in it; return the value."""
        self.memory.take(sum(_text_bytes(each) if isinstance(each, str) else _ELEMENT_BYTES for each in _parts(value)))
        return value

    def iterate(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield ``values``, and count one step for each value."""
        for value in values:
            self.step()
            yield value


def budget_of(context: Context) -> RenderBudget:
    """Return the budget of the rendering to which ``context`` belongs."""
    budget: RenderBudget = context[BUDGET]
    return budget


def written(value: Any) -> Any:
    """Return a value that will become text; raise UndefinedError for null, which would become the word "None"."""
    if value is None:
        raise UndefinedError("the value is null, which has no text; give one, as in {{ value or 'unknown' }}")
    return value


def check_size(characters: int) -> None:
    """Raise LimitReached for text of more than MAX_CHARS characters."""
    if characters > MAX_CHARS:
        raise LimitReached(f"more than {MAX_CHARS:,} characters")


def weigh(value: Any) -> int:
    """Estimate the length of ``value`` as text; raise LimitReached above MAX_CHARS or MAX_ELEMENTS.

    Count a value each time it occurs: nested lists that share elements are small in memory, but huge as text.
    """
    if type(value) is str and len(value) < MAX_CHARS:
        return 1 + len(value)
    total = 0
    for elements, each in enumerate(_parts(value), 1):
        if isinstance(each, Undefined):
            str(each)  # raises the error of the undefined value
        total += _own_weight(each)
        check_size(total)
        if elements > MAX_ELEMENTS:
            raise LimitReached(f"more than {MAX_ELEMENTS:,} elements")
    return total


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and all elements in it, at any depth."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Mapping):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)


def _own_weight(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, int):
        return 1 + value.bit_length() // 3
    return 1


def _text_bytes(text: str) -> int:
    return _ELEMENT_BYTES + len(text) * (1 if text.isascii() else _WIDEST_CHARACTER)


_KEPT = """
    abs count d default dictsort first float int items last length list map max min reject rejectattr reverse select
    selectattr sort unique
"""
_OF_TEXT = ("capitalize", "lower", "title", "trim", "upper", "wordcount")


def guarded(name: str, owner: str, arguments: Sequence[Any], budget: RenderBudget) -> str:
    """Return ``owner.join(...)`` or ``owner.replace(...)``; raise LimitReached if the result would be too large."""
    if name == "join":
        return _join(arguments[0] if arguments else (), owner, budget)
    return _replace(owner, *arguments)


def _join(values: Iterable[Any], separator: str, budget: RenderBudget) -> str:
    texts: list[str] = []
    total = 0
    for value in budget.iterate(values):
        total += weigh(value) + len(separator)
        check_size(total)
        texts.append(_text(value, budget))
    return separator.join(texts)


def _text(value: Any, budget: RenderBudget) -> str:
    if not budget.writes_null:
        written(value)
    if isinstance(value, Undefined):
        return str(value)  # raises the error of the undefined value
    weigh(value)
    return value if isinstance(value, str) else str(value)


def _replace(text: str, old: str = "", new: str = "", count: int | None = None) -> str:
    if not all(isinstance(value, str) for value in (text, old, new)):
        raise TypeError("replace expects two texts: the old and the new")
    found = text.count(old)
    times = found if count is None or count < 0 else min(found, count)
    check_size(len(text) + times * len(new))
    return text.replace(old, new, -1 if count is None else count)


@pass_context
def _join_filter(context: Context, values: Iterable[Any], d: str = "", attribute: Any = None) -> str:
    mapped = values if attribute is None else JINJA_FILTERS["map"](context, values, attribute=attribute)
    return _join(mapped, d, budget_of(context))


def _of_text(name: str) -> Callable[..., Any]:
    @pass_context
    def applied(context: Context, value: Any, *args: Any, **named: Any) -> Any:
        return JINJA_FILTERS[name](_text(value, budget_of(context)), *args, **named)

    return applied


@pass_context
def _string(context: Context, value: Any) -> str:
    return _text(value, budget_of(context))


@pass_context
def _replace_filter(context: Context, text: Any, old: str, new: str, count: int | None = None) -> str:
    return _replace(_text(text, budget_of(context)), old, new, count)


def _tojson(value: Any, indent: int | None = None) -> str:
    """Return JSON for prompts, without HTML escapes and with non-ASCII characters unchanged."""
    if isinstance(value, Undefined):
        str(value)
    if indent is not None and not 0 <= indent <= 8:
        raise LimitReached("tojson: indent beyond 8")
    weigh(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def _hash(value: Any) -> str:
    """Return a 12-character hash that identifies a value, such as a row without an id."""
    return sha256(_tojson(value).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@pass_context
def _indent(context: Context, text: Any, width: int = 4, first: bool = False, blank: bool = False) -> str:
    lines = _text(text, budget_of(context)).split("\n")
    if not 0 <= width <= 100 or len(lines) * width > MAX_CHARS:
        raise LimitReached("indent: width beyond 100")
    gap = " " * width
    return "\n".join(gap + line if (line or blank) and (number or first) else line for number, line in enumerate(lines))


@pass_context
def _concatenate(context: Context, *values: Any) -> Any:
    check_size(sum(map(weigh, values)))
    budget = budget_of(context)
    return budget.made("".join(_text(value, budget) for value in values))


def _round(value: float, precision: int = 0, method: str = "common") -> float:
    if abs(precision) > 20:
        raise LimitReached("round: precision beyond 20")
    rounded: float = JINJA_FILTERS["round"](value, precision, method)
    return rounded


def _sum(values: Iterable[Any]) -> Any:
    numbers = [*values]
    # Refuse lists and strings, because their sum would grow with every step.
    if others := [type(value).__name__ for value in numbers if not isinstance(value, int | float)]:
        raise TypeError(f"sum adds numbers, got {others[0]}")
    return sum(numbers)


@pass_context
def _weigh(context: Context, value: Any) -> Any:
    budget_of(context).step()
    weigh(value)
    return value


@pass_context
def _made(context: Context, value: Any) -> Any:
    return budget_of(context).made(_weigh(context, value))


@pass_context
def _made_throughout(context: Context, value: Any) -> Any:
    return budget_of(context).made_throughout(_weigh(context, value))


def _shown(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | list | tuple | dict | Undefined):
        return value
    if callable(value):
        raise TypeError("a method is not a value; put () after its name to call it")
    # Data-set cells that hold bytes have the attribute ``no_text``.
    raise TypeError(getattr(value, "no_text", "a lazy list is not text; end the expression in |list or |join"))


@pass_context
def _iterate(context: Context, values: Any) -> Any:
    # Return a list for values with a length, so that a loop knows how many values there are.
    budget = budget_of(context)
    if isinstance(values, Undefined):
        return values
    if isinstance(values, str | dict | list | tuple | range):
        return list(budget.iterate(values))
    return budget.iterate(values)


FILTERS: Mapping[str, Callable[..., Any]] = {
    **{name: JINJA_FILTERS[name] for name in _KEPT.split()},
    **{name: _of_text(name) for name in _OF_TEXT},
    "join": _join_filter,
    "replace": _replace_filter,
    "tojson": _tojson,
    "hash": _hash,
    "indent": _indent,
    "round": _round,
    "string": _string,
    "sum": _sum,
    " concatenate": _concatenate,
    " weigh": _weigh,
    " made": _made,
    " made throughout": _made_throughout,
    " shown": _shown,
    " iterate": _iterate,
}
