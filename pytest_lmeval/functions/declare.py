"""``@eval_task``: the mark that makes a test function a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from pytest_lmeval.errors import RecordRefused, UsageError

Data = str | Path | Sequence[Mapping[str, Any]] | Callable[[], Sequence[Mapping[str, Any]]]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__lm_eval__"
NO_YIELD = "take the yield out, and write what comes after it into a fixture or a try/finally"


@dataclass(frozen=True, slots=True)
class EvalFunction:
    """What ``eval_task`` was told, and the function that it marks.

    ``is_async`` says whether the function, or the one that it wraps, is ``async def``: it then gets the ``lm`` that is
    awaited.
    """

    name: str
    function: Callable[..., Any]
    data: Data | None = None
    score: str | None = None
    threshold: float = 1.0
    min_score: float | None = None
    timeout: float | None = None
    threads: bool = False
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_async: bool = False


def is_async(function: Any) -> bool:
    """Tell whether a function, or the one that it wraps, is ``async def``."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def has_yield(function: Any) -> bool:
    """Tell whether a call of a function, or of the one that it wraps, runs nothing: there is a ``yield`` in it."""
    unwrapped = inspect.unwrap(function)
    return inspect.isgeneratorfunction(unwrapped) or inspect.isasyncgenfunction(unwrapped)


def eval_task(  # noqa: PLR0913  # keyword-only, one for each thing that can be said of a task
    name: str,
    *,
    data: Data | None = None,
    score: str | None = None,
    threshold: float | None = None,
    min_score: float | None = None,
    timeout: float | None = None,
    threads: bool = False,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Make a test function the eval ``name``: a task whose examples are the rows of ``data``.

    ``data`` is the path of a csv, jsonl or parquet file beside the test file, rows, or a function that returns rows;
    each becomes the argument ``row``. Without it the function is one example, or those of ``pytest.mark.parametrize``.
    ``score`` names the score that decides, without it the first one that is recorded does. ``threshold`` is the score
    that an example must reach, in [0, 1], 1 without it; ``min_score`` the one that the task must. ``timeout`` is in
    seconds, from the call of the function. ``threads`` runs a ``def`` function beside others, in threads. ``tags``
    select examples, by ``-m`` too. ``metadata`` is that of each example, such as ``must_pass`` or ``cluster``.

    Raises UsageError for a value out of range, and for what is no function.
    """
    _check_text("name", name)
    if score is not None:
        _check_text("score", score)
    _check_numbers(name, {"threshold": threshold, "min_score": min_score}, timeout)
    if metadata:
        _check_metadata(name, metadata)
    if isinstance(tags, str) or not all(isinstance(tag, str) and tag for tag in tags):
        raise UsageError(f"eval_task({name!r}): tags: expected a list of texts, got {tags!r}")

    def mark(function: _Function) -> _Function:
        _check_function(name, function, has_data=data is not None, threads=threads)

        # A plain function, whatever it wraps: plugins for async tests leave it alone.
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

        if marks := getattr(function, "pytestmark", None):
            vars(call)["pytestmark"] = list(marks)
        vars(call)[_MARK] = EvalFunction(
            name,
            function,
            data,
            score,
            1.0 if threshold is None else float(threshold),
            min_score,
            timeout,
            threads,
            tuple(tags),
            dict(metadata or {}),
            is_async(function),
        )
        return call  # type: ignore[return-value]  # of the function's own type, for whoever calls it

    return mark


def declared(function: object) -> EvalFunction | None:
    """Return what ``eval_task`` was told of ``function``; None where it marks it not."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, EvalFunction) else None


def _check_text(what: str, given: object) -> None:
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"eval_task: {what}: expected a text that is not empty, got {given!r:.80}")


def _check_metadata(name: str, metadata: Mapping[str, Any]) -> None:
    from pytest_lmeval.formats.checks import gate_fields
    from pytest_lmeval.formats.extras import OF_ANY, check_keys

    try:
        gate_fields(metadata, "metadata")
        check_keys(metadata, "metadata", OF_ANY)
    except RecordRefused as refused:
        raise UsageError(f"eval_task({name!r}): {refused.field}: {refused.detail}") from None


def _check_numbers(name: str, shares: Mapping[str, object], timeout: float | None) -> None:
    for what, share in shares.items():
        if share is not None and not _is_share(share):
            raise UsageError(f"eval_task({name!r}): {what}: expected a number from 0 to 1, got {share!r}")
    if timeout is not None and not (_is_number(timeout) and timeout > 0):
        raise UsageError(f"eval_task({name!r}): timeout: expected seconds above 0, got {timeout!r}")


def _check_function(name: str, function: Any, *, has_data: bool, threads: bool) -> None:
    if not inspect.isfunction(function):
        raise UsageError(f"eval_task({name!r}) goes on a function, not on {function!r:.80}")
    if has_yield(function):
        raise UsageError(
            f"eval_task({name!r}): {function.__name__} has a yield, so a call of it runs nothing: {NO_YIELD}"
        )
    if threads and is_async(function):
        raise UsageError(f"eval_task({name!r}): threads=True is for def functions; an async one needs no thread")
    if has_data and "row" not in inspect.signature(function).parameters:
        raise UsageError(f"eval_task({name!r}) has data: give {function.__name__} an argument named row")


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _is_share(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
