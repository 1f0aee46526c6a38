"""One YAML file, its keys over those of the files that it includes; functions are references until they are called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]  # it has no types of its own

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.frozen import dataclass

MAX_BYTES = 4 << 20
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function by its name in a module: a file in ``folder``, else an installed module."""

    folder: Path
    module: str
    name: str


def read_document(path: Path) -> dict[str, Any]:
    """Return the keys of the file at ``path`` over those of its includes; raise RecordRefused that names the file.

    Scalars are those of YAML 1.1, as the harness's own loader reads them: ``no`` is false, ``1_000`` a thousand.
    """
    return _read(path, ())


def _read(path: Path, including: tuple[Path, ...]) -> dict[str, Any]:
    path = path.resolve()
    if path in including:
        chain = " includes ".join(each.name for each in (*including[including.index(path) :], path))
        raise RecordRefused("bad_value", "include", f"a circle: {chain}")
    document = _parsed(path)
    merged: dict[str, Any] = {}
    included = document.pop("include", [])
    for name in included if isinstance(included, list) else [included]:
        if not isinstance(name, str) or not name:
            raise RecordRefused("bad_type", "include", f"expected the name of a file, got {name!r:.80}")
        below = _read(path.parent / name, (*including, path))
        # The members of a file are its own.
        below.pop("task_list", None)
        merged |= below
    return merged | document


def _parsed(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordRefused("bad_value", "include", f"{path.name}: cannot be read: {error.strerror}") from None
    return parse_document(data, path)


def parse_document(data: bytes, path: Path) -> dict[str, Any]:
    """Return what ``data``, the content of the file at ``path``, holds, without what it includes."""
    if len(data) > MAX_BYTES:
        raise RecordRefused("bad_value", "_document", f"{path.name}: more than {MAX_BYTES:,} bytes")
    try:
        document = yaml.load(data, Loader=_loader(path.parent))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path.name}:{mark.line + 1}: column {mark.column + 1}: " if mark else f"{path.name}: "
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise RecordRefused("bad_yaml", "_document", f"{place}{problem}") from None
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise RecordRefused("bad_type", "_document", f"{path.name}: expected keys with values, got {kind}")
    return {str(key): value for key, value in document.items()}


def _loader(folder: Path) -> Any:
    def function(loader: Any, node: Any) -> FunctionRef:
        module, _, name = str(loader.construct_scalar(node)).rpartition(".")
        if not module or not name:
            raise ValueError(f"!function expects MODULE.NAME, got {node.value!r:.80}")
        return FunctionRef(folder, module, name)

    class Loader(_Loader):  # type: ignore[misc]  # the base is one of two, of which one may be missing
        """The safe loader, and the one tag that these files have besides."""

    Loader.add_constructor("!function", function)
    return Loader


def plain(value: Any) -> Any:
    """Return ``value`` as JSON, functions as their names: what a hash or a report takes."""
    if isinstance(value, FunctionRef):
        return f"!function {value.module}.{value.name}"
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
