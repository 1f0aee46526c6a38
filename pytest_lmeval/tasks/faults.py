"""Report errors in task authors' code with file and line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pytest_lmeval.errors import LmevalError, RecordRefused, ScoringError
from pytest_lmeval.text import OURS, error_text, portable_path, raised_in

_Result = TypeVar("_Result")


def called(field: str, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a task's own ``function``; turn its exceptions into RecordRefused ``python_error`` for ``field``."""
    try:
        return function(*arguments)
    except RecordRefused as refused:
        owner = f"{field.partition('.')[0]}."
        # Name the task's innermost method.
        inner = refused.field if refused.field.startswith(owner) else f"{owner}{refused.field}"
        raise RecordRefused(refused.rule, inner, refused.detail) from None
    except LmevalError:
        raise
    except (Exception, SystemExit) as error:
        raise RecordRefused("python_error", field, f"{described(error)}{_keys(error, arguments)}") from error


def scored(name: str, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a task's own ``function`` to score an example; turn its exceptions into ScoringError."""
    try:
        return function(*arguments)
    except LmevalError:
        raise
    except (Exception, SystemExit) as error:
        raise ScoringError(f"{name} raised {described(error)}") from error


def described(error: BaseException) -> str:
    """Return a line with the exception's type, its text, and the innermost location outside this package."""
    if isinstance(error, SyntaxError) and error.filename:
        column = f", column {error.offset}" if error.offset else ""
        return f"{type(error).__name__}: {error.msg} ({portable_path(error.filename)}:{error.lineno}{column})"
    place = raised_in(error, skips=lambda path: path.startswith((OURS, "<frozen ")))
    return f"{error_text(error)} ({place})" if place else error_text(error)


def line_in(error: BaseException, path: Path) -> int:
    """Return the innermost line number in the file ``path`` from the error's traceback, or 1."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 1
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    return lines[-1] if lines else 1


def _keys(error: BaseException, arguments: tuple[Any, ...]) -> str:
    if isinstance(error, KeyError) and arguments and isinstance(arguments[0], dict):
        return f"; the item has {', '.join(map(str, arguments[0])) or 'no key'}"
    return ""
