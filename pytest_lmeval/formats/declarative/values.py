"""Plain values: what crosses between rows, templates and Python snippets."""

from __future__ import annotations

import math
from typing import Any

_MAX_DEPTH = 50


class Attributes(dict[str, Any]):
    """A mapping whose keys are attributes, too, as snippets written for other tools expect."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r}; there is {', '.join(map(str, self)) or 'nothing'}") from None


def attributes(value: Any) -> Any:
    """Return a copy of a JSON value with :class:`Attributes` for mappings: a snippet may change it."""
    if isinstance(value, dict):
        return Attributes({key: attributes(each) for key, each in value.items()})
    if isinstance(value, list | tuple):
        return [attributes(each) for each in value]
    return value


def plain(value: Any, where: str = "", depth: int = 0) -> Any:
    """Return ``value`` as JSON has it; raise ValueError that names the element that JSON has not.

    NaN and infinities are not numbers here. Scalars of numpy become Python's.
    """
    if depth > _MAX_DEPTH:
        raise ValueError(f"{where or 'the value'} is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {
            _key(key, where): plain(each, f"{where}.{key}" if where else str(key), depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(each, f"{where}[{number}]", depth + 1) for number, each in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    return _scalar(value, where or "the value")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise ValueError(f"{where or 'the value'} has the key {key!r:.80}; expected text")
    return str(key)


def _scalar(value: Any, where: str) -> Any:
    if not isinstance(value, str | int | float) and callable(getattr(value, "item", None)):
        value = value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int):
        return bool(value) if isinstance(value, bool) else int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value!r}; expected a finite number")
        return float(value)
    raise ValueError(
        f"{where} is a {type(value).__name__}; expected text, a number, a boolean, null, a list or a mapping"
    )
