"""Define ``@eval_task``, which turns a test function into a task, and read the rows of the task's data."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cached_property, wraps
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from pytest_lmeval.data.limits import MAX_ROWS, check_rows
from pytest_lmeval.errors import BadTaskFile, LmevalError, RecordRefused, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import is_number
from pytest_lmeval.text import portable_path

Data = str | Path | Iterable[Mapping[str, Any]] | Callable[[], Iterable[Mapping[str, Any]]]
Row = dict[str, Any]
"""A row of an eval function's data; each call gets a copy."""
Numbers = float | Mapping[str, float]
"""A number for the decisive score, or a mapping from score names to numbers."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__lm_eval__"
_LISTS = (".json", ".yaml", ".yml")
_FIXED = frozenset({str, int, float, bool, type(None), bytes, complex, frozenset, range})
_OF_FIXED_VALUES = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo", "re"})
_SCORE_NAME = re.compile(r"[A-Za-z0-9_-]+")
# These packages' exceptions mean that a request failed, but some do not derive from a built-in connection error.
_CLIENTS = frozenset({"aiohttp", "anthropic", "httpcore", "httpx", "litellm", "openai", "requests", "urllib3"})
# OpenAI's client raises these for a reply that it cannot parse.
_OF_REPLIES = "FinishReasonError"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
NO_YIELD = (
    "has a yield, so a call of it runs nothing: "
    "remove the yield, and move the code after it into a fixture or try/finally"
)


@dataclass(frozen=True, slots=True)
class EvalFunction:
    """A decorated function, with the arguments of ``eval_task``.

    ``is_async`` is True if the function, or the function that it wraps, is ``async def``; such a function must await
    the methods of ``lm``. ``scores`` maps score names to a ``threshold``, a ``min_score`` or both. ``fails`` are the
    exceptions that score 0.
    """

    name: str
    function: Callable[..., Any]
    data: Data | None = None
    score: str | None = None
    threshold: float = 1.0
    min_score: float | None = None
    timeout: float | None = None
    threads: bool | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_async: bool = False
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fails: tuple[type[Exception], ...] = ()
    variants: Mapping[str, Any] = field(default_factory=dict)


def is_async(function: Any) -> bool:
    """Return True if a function, or the function that it wraps, is ``async def``."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))


def has_yield(function: Any) -> bool:
    """Return True if a function, or the function that it wraps, contains ``yield``, so that calling it runs nothing."""
    unwrapped = inspect.unwrap(function)
    return inspect.isgeneratorfunction(unwrapped) or inspect.isasyncgenfunction(unwrapped)


def eval_task(  # noqa: C901, PLR0913  # keyword-only, one per property of a task, and its check
    name: str | None = None,
    *,
    data: Data | None = None,
    score: str | None = None,
    threshold: Numbers | None = None,
    min_score: Numbers | None = None,
    timeout: float | None = None,
    threads: bool | None = None,
    repeats: int | None = None,
    passes: int | None = None,
    fails: Sequence[type[Exception]] = (),
    variants: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Turn a test function into the eval ``name``: a task whose examples are the rows of ``data``.

    ``name`` defaults to the function's name without ``test_``. ``data`` is the path to a csv, jsonl, parquet, json or
    yaml file, an iterable of rows, or a function that returns rows. The path is relative to the test file's folder, and
    an iterable is read once. Each row becomes the argument ``row``. Without ``data``, the function is a single example,
    or has one example for each parameter set of ``pytest.mark.parametrize``. ``score`` names the decisive score, by
    default the first score that the function records. ``threshold`` is the score in [0, 1] that an example must reach,
    by default 1, and ``min_score`` is the score that the task must reach. Each of ``threshold`` and ``min_score`` is a
    number for the decisive score, or a mapping from score names to numbers. With a mapping, an example must record all
    scores in the mapping, and passes if each score reaches its threshold. ``timeout`` is the time limit in seconds for
    each call to the function. If ``threads`` is true, a ``def`` function runs in threads, several examples at a time;
    the default is the ini option ``lm_threads``. ``tags`` are words that select examples, for example with ``-m``.
    ``metadata`` sets keys of every example, such as ``must_pass`` or ``cluster``.

    ``repeats`` is the number of runs of each example, and overrides ``--lm-repeats``. With ``passes``, an example
    passes if at least ``passes`` of its repeats pass; its score is still the mean of all repeats.

    An exception in ``fails``, such as a validation error for a reply, scores 0, as a failed assertion does. Any other
    exception marks the example as an error. ``variants`` maps names to values. The function runs on all rows once for
    each value, which becomes the argument ``variant``. Each variant is a task ``NAME@VARIANT``, and ``lmeval rank --by
    config`` compares these tasks.

    Raises UsageError for an invalid argument, or if the decorated object is not a function.
    """
    if name is None:
        given = {key: value for key, value in locals().items() if key != "name"}
        return lambda function: eval_task(task_name(getattr(function, "__name__", "test")), **given)(function)
    _check_text("name", name)
    if isinstance(data, Iterable) and not isinstance(data, str | Sequence | Mapping) and not callable(data):
        data = ReadOnce(data)
    if score is not None:
        _check_text("score", score)
    scores: Mapping[str, Mapping[str, float]] = {}
    if isinstance(threshold, Mapping) or isinstance(min_score, Mapping):
        threshold, min_score, scores = _by_name(name, score, threshold, min_score)
    _check_numbers(name, {"threshold": threshold, "min_score": min_score}, timeout)
    if repeats is not None or passes is not None:
        own = {"repeats": repeats, "passes": passes}
        metadata = {**(metadata or {}), **{key: value for key, value in own.items() if value is not None}}
    if metadata:
        _check_metadata(name, metadata)
    if isinstance(tags, str) or not all(isinstance(tag, str) and tag for tag in tags):
        raise UsageError(f"eval_task({name!r}): tags: expected a list of texts, got {tags!r}")
    _check_fails(name, fails)
    _check_variants(name, variants)

    def mark(function: _Function) -> _Function:
        arguments = {"row": "data" if data is not None else "", "variant": "variants" if variants else ""}
        _check_function(name, function, arguments, threads=threads)

        # Return a plain function even for an async function, so that plugins for async tests ignore it.
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
            1.0 if threshold is None else float(threshold),  # type: ignore[arg-type]  # no mapping any more
            min_score,  # type: ignore[arg-type]  # no mapping any more
            timeout,
            threads,
            tuple(tags),
            dict(metadata or {}),
            is_async(function),
            scores,
            tuple(fails),
            dict(variants or {}),
        )
        return call  # type: ignore[return-value]  # has the type of the function, for its callers

    return mark


def task_name(function: str) -> str:
    """Return a task's default name, which is its function's name without ``test_``."""
    return function.removeprefix("test_") or function


class ReadOnce:
    """Rows of an iterable that can be read only once, such as a generator."""

    def __init__(self, given: Iterable[Any]) -> None:
        self._given = given

    @cached_property
    def rows(self) -> Sequence[Any]:
        """The rows, read on first use."""
        rows = [*islice(self._given, MAX_ROWS + 1)]
        check_rows("data", len(rows))
        return rows

    def __call__(self) -> Sequence[Any]:
        """Return the rows; this makes the object a valid ``data`` argument."""
        return self.rows


def declared(function: object) -> EvalFunction | None:
    """Return the ``eval_task`` mark of ``function``, or None."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, EvalFunction) else None


def _check_text(what: str, given: object) -> None:
    if what == "name" and callable(given):
        raise UsageError("eval_task: write @eval_task(), with parentheses")
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"eval_task: {what}: expected a text that is not empty, got {given!r:.80}")


def _check_metadata(name: str, metadata: Mapping[str, Any]) -> None:
    from pytest_lmeval.formats.checks import check_keys, gate_fields
    from pytest_lmeval.types import POLICY_KEYS

    try:
        gate_fields(metadata, "metadata")
        check_keys(metadata, "metadata", POLICY_KEYS)
    except RecordRefused as refused:
        raise UsageError(f"eval_task({name!r}): {refused.field}: {refused.detail}") from None


def _check_numbers(name: str, shares: Mapping[str, object], timeout: float | None) -> None:
    for what, share in shares.items():
        if share is not None and not _is_share(share):
            raise UsageError(f"eval_task({name!r}): {what}: expected a number from 0 to 1, got {share!r}")
    if timeout is not None and not (timeout == math.inf or (is_number(timeout) and timeout > 0)):
        raise UsageError(f"eval_task({name!r}): timeout: expected seconds above 0, got {timeout!r}")


def _by_name(
    task: str, decisive: str | None, threshold: Any, min_score: Any
) -> tuple[Any, Any, Mapping[str, Mapping[str, float]]]:
    """Return the two numbers for the decisive score, and the numbers of named scores.

    ``decisive`` names the decisive score, if it is known. Raise UsageError for an empty mapping, an invalid name or an
    invalid number.
    """
    given = {"threshold": threshold, "min_score": min_score}
    scores: dict[str, dict[str, float]] = {}
    for kind, numbers in given.items():
        if isinstance(numbers, Mapping):
            for name, number in _checked_names(task, kind, numbers).items():
                scores.setdefault(name, {})[kind] = number
            given[kind] = numbers.get(decisive)
    return given["threshold"], given["min_score"], scores


def _checked_names(task: str, kind: str, numbers: Mapping[Any, Any]) -> Mapping[str, float]:
    if not numbers:
        raise UsageError(
            f"eval_task({task!r}): {kind}: expected a number from 0 to 1, or a mapping of names to such numbers"
        )
    for name, number in numbers.items():
        if not (isinstance(name, str) and _SCORE_NAME.fullmatch(name)):
            what = "expected the name of a score, of letters, digits, - and _"
            raise UsageError(f"eval_task({task!r}): {kind}: {what}, got {name!r:.60}")
        if not _is_share(number):
            raise UsageError(
                f"eval_task({task!r}): {kind}[{name!r}]: expected a number from 0 to 1, got {number!r:.60}"
            )
    return numbers


def _is_share(number: object) -> bool:
    return is_number(number) and 0 <= number <= 1


def _check_fails(name: str, fails: object) -> None:
    where = f"eval_task({name!r}): fails"
    if not isinstance(fails, Sequence) or isinstance(fails, str):
        raise UsageError(f"{where}: expected a list of exception types, got {fails!r:.80}")
    for each in fails:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise UsageError(f"{where}: expected exception types below Exception, got {each!r:.80}")
        is_fault = issubclass(OSError, each) or issubclass(each, ConnectionError | TimeoutError | LmevalError)
        is_of_client = each.__module__.partition(".")[0] in _CLIENTS and not each.__name__.endswith(_OF_REPLIES)
        if is_fault or is_of_client:
            raise UsageError(
                f"{where}: {each.__name__} also means that something around the application failed, which is an error "
                "and no score: name the exceptions with which the application rejects a reply"
            )


def _check_variants(name: str, variants: object) -> None:
    where = f"eval_task({name!r}): variants"
    if variants is None:
        return
    if not isinstance(variants, Mapping) or len(variants) < 2:
        raise UsageError(f"{where}: expected two names or more, each with its value, got {variants!r:.80}")
    for variant in variants:
        if not (isinstance(variant, str) and _SCORE_NAME.fullmatch(variant)):
            raise UsageError(f"{where}: expected names of letters, digits, - and _, got {variant!r:.60}")


def _check_function(name: str, function: Any, arguments: Mapping[str, str], *, threads: bool | None) -> None:
    if not inspect.isfunction(function):
        raise UsageError(f"eval_task({name!r}) decorates a function, not {function!r:.80}")
    if has_yield(function):
        raise UsageError(f"eval_task({name!r}): {function.__name__} {NO_YIELD}")
    if threads and is_async(function):
        raise UsageError(f"eval_task({name!r}): threads=True is for def functions; an async one needs no thread")
    parameters = inspect.signature(function).parameters
    for argument, source in arguments.items():
        if source and argument not in parameters:
            raise UsageError(f"eval_task({name!r}) has {source}: give {function.__name__} an argument named {argument}")


class DataRows(NamedTuple):
    """A task's rows, with their examples' ids, the file's path or "", and the data's SHA-256."""

    rows: Sequence[Mapping[str, Any]]
    ids: Sequence[str]
    path: str
    sha256: str

    @property
    def numbered(self) -> bool:
        """True if no row has an ``id``."""
        return all(row.get("id") is None for row in self.rows)

    def at(self, places: Sequence[int]) -> DataRows:
        """Keep only the rows at ``places``."""
        rows, ids = [self.rows[place] for place in places], [self.ids[place] for place in places]
        return DataRows(rows, ids, self.path, self.sha256)


def rows_of(task: EvalFunction, folder: Path) -> DataRows:
    """Return the rows of ``task``; ``folder`` is the folder of the test file.

    A row's id is its field ``id``, which must be text or a whole number. If no row has this field, the rows' numbers,
    counted from 1, are their ids. Raises BadTaskFile for missing, unreadable or empty data, for a row that is not a
    mapping, and for an invalid or duplicate id.
    """
    where = f"eval_task({task.name!r})"
    given = task.data
    if isinstance(given, str | Path):
        path = folder / given
        rows, sha256 = _from_file(path, where)
        return DataRows(rows, _ids(rows, f"{where}: {given}"), portable_path(str(path)), sha256)
    if callable(given):
        try:
            given = given()
            if isinstance(given, Iterable) and not isinstance(given, str | Sequence | Mapping):
                given = ReadOnce(given).rows
        except LmevalError as error:
            raise BadTaskFile(f"{where}: data: {error}") from error
        except SystemExit as error:  # pytest would report an internal error
            raise BadTaskFile(f"{where}: data: the function called sys.exit({error.code!r}); return rows") from error
    rows = _checked(given, where)
    text = row_text(rows).encode("utf-8", "surrogatepass")
    return DataRows(rows, _ids(rows, where), "", hashlib.sha256(text).hexdigest())


def _checked(given: object, where: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise BadTaskFile(f"{where}: data: expected a path, rows or a function that returns rows, got {given!r:.80}")
    for number, row in enumerate(given, start=1):
        if not isinstance(row, Mapping):
            raise BadTaskFile(f"{where}: data: row {number}: expected a mapping, got {row!r:.80}")
    if not given:
        raise BadTaskFile(f"{where}: data: no rows")
    return given


def row_text(row: Any) -> str:
    """Return a row as JSON with sorted keys, and with the ``repr`` of each value that JSON cannot represent."""
    return _ROW_ENCODER.encode(row)


def json_values(kinds: set[str]) -> Callable[[Any], str]:
    """Return a function that encodes a row's JSON values identically in every process.

    The function replaces any other value with the name of the value's type, and adds this name to ``kinds``.
    """

    def by_type(value: object) -> object:
        if isinstance(value, Mapping):
            return dict(value)
        kinds.add(type(value).__name__)
        return type(value).__name__

    return json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=by_type).encode


def fresh(value: Any, note_shared: Callable[[Any], None]) -> Any:
    """Copy the dicts, lists and tuples in a row or parameter, so that each call gets new objects.

    Call ``note_shared`` with every other mutable value, because all calls share it.
    """
    kind = type(value)
    if kind is dict:
        # Most values are text or numbers, and a call for each value would dominate the time.
        return {name: each if type(each) in _FIXED else fresh(each, note_shared) for name, each in value.items()}
    if kind is list or kind is tuple:
        return kind([each if type(each) in _FIXED else fresh(each, note_shared) for each in value])
    if kind not in _FIXED and not _is_fixed(value):
        note_shared(value)
    return value


def _is_fixed(value: object) -> bool:
    return isinstance(value, Enum | type | FunctionType) or type(value).__module__ in _OF_FIXED_VALUES


def _shown(value: object) -> str:
    # Remove the addresses of objects, which differ between processes.
    return _ADDRESS.sub("", repr(value))


# ``json.dumps`` would create an encoder for each row.
_ROW_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=_shown)


def _from_file(path: Path, where: str) -> tuple[Sequence[Mapping[str, Any]], str]:
    from pytest_lmeval.data.rows import SUFFIXES, BadRows, read_rows

    if path.suffix not in (*SUFFIXES, *_LISTS):
        raise BadTaskFile(f"{where}: data: {path.name!r} is not one of {', '.join((*SUFFIXES, *_LISTS))}")
    read: Callable[[Path], tuple[list[dict[str, Any]], bytes]] = read_rows
    if path.suffix in _LISTS:
        from pytest_lmeval.functions.row_files import read_list as read
    try:
        rows, data = read(path)
    except OSError as error:
        raise BadTaskFile(f"{where}: data: {path}: {error.strerror}; paths begin at the test file's folder") from None
    except BadRows as error:
        raise BadTaskFile("\n".join(f"{where}: data: {fault}" for fault in error.faults)) from None
    if not rows:
        raise BadTaskFile(f"{where}: data: {path.name} has no rows")
    return rows, hashlib.sha256(data).hexdigest()


def _ids(rows: Sequence[Mapping[str, Any]], where: str) -> list[str]:
    given = [row.get("id") for row in rows]
    if all(each is None for each in given):
        return [str(number) for number in range(1, len(rows) + 1)]
    first: dict[str, int] = {}
    for number, each in enumerate(given, start=1):
        if not isinstance(each, str | int) or isinstance(each, bool) or each == "":
            raise BadTaskFile(f"{where}: row {number}: id: expected a text or a whole number, got {each!r:.80}")
        if (other := first.setdefault(str(each), number)) != number:
            raise BadTaskFile(f"{where}: rows {other} and {number} have the same id {each!r:.80}")
    return list(first)
