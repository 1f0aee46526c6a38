"""Functions of the program as the tests' process sees them: calls that go through the parent to the program's."""

from __future__ import annotations

import builtins

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDS_OF_LOOPS = ("StopAsyncIteration", "StopIteration")


class CandidateError(Exception):
    """The program raised an exception of its own making, or returned what is not plain data."""


class Proxy:
    """A callable that asks the parent for the value."""

    def __init__(self, name: str, request: int, result: int) -> None:
        self.__name__ = self.__qualname__ = name
        self._pipes = request, result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the program's function returns; raise what it raises; repeat what it does to its arguments."""
        request, result = self._pipes
        wire.reply(result, "call", self.__name__, list(args), kwargs)
        kind, *parts = wire.receive(request)
        if kind != "value":
            raise _exception(kind, *parts)
        value, after = wire.unpack(parts)
        for arg, now in zip(args, after or (), strict=False):
            _repeat(arg, now)
        return value


def _exception(kind: str, name: str, text: str = "") -> Exception:
    if kind != "raised":
        return CandidateError(name)
    builtin = getattr(builtins, name, None)
    # One that ends a loop would end the tests' own, and with it what they have yet to ask.
    if isinstance(builtin, type) and issubclass(builtin, Exception) and name not in ENDS_OF_LOOPS:
        # Without a text of their own, some of these take other arguments than one string.
        made = builtin.__new__(builtin)
        made.args = (text.removeprefix(f"{name}: "),)
        return made
    return CandidateError(text)


def _repeat(arg: Any, now: Any) -> None:
    if isinstance(arg, list):
        arg[:] = now
    elif isinstance(arg, (dict, set)):
        arg.clear()
        arg.update(now)
