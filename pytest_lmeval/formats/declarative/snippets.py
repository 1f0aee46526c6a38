"""Run a task's Python snippets: trust them like a conftest.py, check them before the run, and stop them if they hang.

A snippet and its task exchange only plain values.
"""

from __future__ import annotations

import ast
import ctypes
import math
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.errors import ScoringError, nearest

_MAX_DEPTH = 50


class Attributes(dict[str, Any]):
    """A mapping whose keys are also attributes, as snippets written for other tools expect."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name!r}; there is {', '.join(map(str, self)) or 'nothing'}") from None


def attributes(value: Any) -> Any:
    """Return a copy of a JSON value with :class:`Attributes` for mappings; a snippet may change the copy."""
    if isinstance(value, dict):
        return Attributes({key: attributes(each) for key, each in value.items()})
    if isinstance(value, list | tuple):
        return [attributes(each) for each in value]
    return value


def plain(value: Any, where: str = "", depth: int = 0) -> Any:
    """Return ``value`` as JSON; raise a ValueError that names any element that JSON cannot represent, such as NaN.

    Numpy scalars become Python numbers.
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


_MOST_HANGS = 3


class SnippetFault(ValueError):
    """An error that makes a snippet unusable, found before the snippet runs."""


class _TimedOut(BaseException):
    """Raised in a snippet that runs too long."""


@dataclass(slots=True, eq=False)
class Snippet:
    """A function in a snippet, which runs in a separate thread.

    Error messages name the snippet's ``owner``. ``parameters`` lists the names of the function's arguments. A call
    longer than ``timeout_s`` is an error, and its thread is stopped. A thread that runs C code cannot be stopped; it
    lives until the process ends.
    """

    source: str
    filename: str
    function: str
    owner: str
    timeout_s: float
    parameters: tuple[str, ...] = ()
    _worker: _Worker | None = field(default=None, init=False)
    _hangs: int = field(default=0, init=False)

    def __call__(self, *arguments: Any) -> Any:
        """Return the function's result; raise ScoringError, which names the function, if it raises or hangs."""
        if self._hangs >= _MOST_HANGS:
            raise ScoringError(f"{self.name}: not called any more; it has hung {_MOST_HANGS} times")
        if self._worker is None:
            self._worker = _Worker(self.source, self.filename, self.function)
        call: Future[Any] = Future()
        self._worker.calls.put((arguments, call))
        try:
            error = call.exception(self.timeout_s)
        except TimeoutError:
            self._worker.stop()
            self._worker = None
            self._hangs += 1
            raise ScoringError(f"{self.name}: still running after {self.timeout_s:g} s") from None
        if error is not None:
            raise ScoringError(f"{self.name}: {_error_text(error, self.filename)}")
        return call.result()

    @property
    def name(self) -> str:
        """The name for messages: the owner, the function and the file."""
        return f"{self.owner}: {self.function} in {self.filename}"


class _Worker:
    """A thread that calls one function repeatedly."""

    def __init__(self, source: str, filename: str, function: str) -> None:
        self.calls: queue.SimpleQueue[tuple[Sequence[Any], Future[Any]]] = queue.SimpleQueue()
        self._load = (source, filename, function)
        self._thread = threading.Thread(target=self._work, name=f"lmeval {function}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Raise an exception in the thread as soon as it runs Python code."""
        identity = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(_TimedOut))

    def _work(self) -> None:
        function: Callable[..., Any] | None = None
        # The exception may arrive late, between two calls.
        with suppress(_TimedOut):
            while True:
                arguments, call = self.calls.get()
                try:
                    function = function or _load(*self._load)
                    call.set_result(function(*arguments))
                except _TimedOut:
                    raise
                except BaseException as error:  # SystemExit also ends only this call
                    call.set_exception(error)


def _load(source: str, filename: str, name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "lmeval_snippet", "__file__": filename}
    exec(compile(source, filename, "exec"), namespace)
    function = namespace.get(name)
    if not callable(function):
        raise TypeError(f"{name} is not a function once the snippet has run")
    loaded: Callable[..., Any] = function
    return loaded


def _error_text(error: BaseException, filename: str) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    line = f" (its line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error)[:500]}{line}"


def read_snippet(source: str, filename: str, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the first of ``names`` that the snippet defines as a function, and the names of its parameters.

    Raises SnippetFault if the snippet is not Python, or defines none of ``names``.
    """
    try:
        tree = ast.parse(source, filename)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise SnippetFault(
            f"{filename}{f':{line}' if line else ''}: not Python: {getattr(error, 'msg', error)}"
        ) from None
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in names:
        if name in found:
            arguments = found[name].args
            return name, tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args))
    hint = next((hint for name in names if (hint := nearest(name, found))), "")
    known = f" it has {', '.join(found)}" if found else " it has none"
    wanted = " or ".join(f"{name}(...)" for name in names)
    raise SnippetFault(f"{filename}: no function {wanted};{known}{hint}")
