"""What an adapter is: the one key that decides whose answers may be used again, from the cache and by a resumed run."""

from __future__ import annotations

import ast
import json
import os
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pytest_lmeval.adapters.facts import adapter_name, is_ours, member
from pytest_lmeval.adapters.resolve import Made, made_with
from pytest_lmeval.redaction import is_secret_name

# Another key of the same account gets the same answers, and a run that asks nothing needs none.
_ACCESS = "api_key"
# Set by the run, and part of how answers are read.
_NOT_ITS_OWN = frozenset({"think_tags", "options", "fingerprint"})
# How far objects are followed that hold others: a configuration is near, and they may refer round in a circle.
_NEAR = 3
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_OURS = "pytest_lmeval."
_PYTHON = Path(os.__file__).parent
_KNOWN: dict[int, Identity] = {}


class _Module(NamedTuple):
    """A module, the package that its relative imports begin at, and its file."""

    name: str
    package: str
    file: Path


@dataclass(frozen=True, slots=True)
class Identity:
    """Adapters that may answer differently have different keys, as far as that is known.

    ``key`` is a SHA-256 over the spec, the options, the source and the ``fingerprint`` of an adapter. One without
    ``fingerprint`` is also known by its attributes that are plain values and are not named like secrets, and by those
    of the objects of the project's own classes that it holds. ``is_sure`` says that nothing else can decide its
    answers: it has a ``fingerprint``, or a spec and a source that can be read.
    """

    key: str
    is_sure: bool


def identity_of(adapter: Any) -> Identity:
    """Return what ``adapter`` is, as it was when this was first asked; raise UsageError for a bad ``fingerprint``."""
    if (found := _KNOWN.get(id(adapter))) is not None:
        return found
    if isinstance(own := getattr(adapter, "identity", None), Identity):
        return own  # that of the adapter which answers in its place
    found = _identity(adapter, made_with(adapter))
    with suppress(TypeError):  # some objects cannot be referred to weakly
        weakref.finalize(adapter, _KNOWN.pop, id(adapter), None).atexit = False
        _KNOWN[id(adapter)] = found
    return found


def _identity(adapter: Any, made: Made) -> Identity:
    kind, model = type(adapter), member(adapter, "fingerprint") or ""
    source = source_hash(kind, made.module, made.project)
    known = {
        "name": adapter_name(adapter),
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "spec": made.spec,
        "options": _plain(options_of(adapter)),
        "source": source,
        "fingerprint": model,
        "attributes": {} if model or is_ours(adapter) else dict(_attributes(adapter)),
    }
    content = json.dumps(known, sort_keys=True).encode("utf-8", "backslashreplace")
    return Identity(sha256(content).hexdigest(), bool(model or (made.spec and source)))


def options_of(adapter: Any) -> Mapping[str, object]:
    """Return the options that an adapter was made with, and those that it says it has; none is a key of the API."""
    own = getattr(adapter, "options", None)
    options = {**made_with(adapter).options, **(own if isinstance(own, Mapping) else {})}
    return {name: value for name, value in options.items() if not str(name).startswith(_ACCESS)}


def _attributes(holder: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    slots = [name for kind in type(holder).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    for name in sorted({*getattr(holder, "__dict__", {}), *slots} - _NOT_ITS_OWN):
        value = getattr(holder, name, None)
        if not is_secret_name(name) and _is_plain(value, depth):
            yield name, _plain(value, depth)


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, Mapping):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value)
    if value is None or isinstance(value, str | bytes | int | float | Enum | PurePath):
        return True
    return depth < _NEAR and is_of_project(type(value))


def _plain(value: Any, depth: int = 0) -> Any:
    """Return JSON that differs where values differ; what is no JSON is known by its ``repr``."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(inner, depth + 1), sort_keys=True) for inner in value)
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Enum | PurePath) or not is_of_project(type(value)):
        return repr(value)
    return [type(value).__qualname__, dict(_attributes(value, depth + 1))]


def source_hash(kind: type, module: str = "", project: Path | None = None) -> str:
    """Return a SHA-256 over the files of a class, of its bases and of ``module``; "" where one cannot be read.

    To a file of a project belong the files that it imports and that lie below ``project``, or below the folder that it
    was imported from itself; to one of an installed package those of the package; to one of this package those beside
    it. Imports are read from the source: what is imported so far, by this file or by others, decides nothing.
    """
    names = [*(each.__module__ for each in kind.__mro__), *([module] if module else [])]
    files: dict[Path, str] = {}
    try:
        for name in dict.fromkeys(names):
            if not _is_of_python(name):
                _add(files, name, project)
    except (OSError, LookupError):
        return ""
    return sha256("\n".join(sorted(files.values())).encode("utf-8", "backslashreplace")).hexdigest() if files else ""


def is_of_project(kind: type) -> bool:
    """Tell whether a class is neither of Python, nor installed, nor of this package."""
    name = kind.__module__
    if name.startswith(_OURS) or _is_of_python(name):
        return False
    try:
        return not _INSTALLED & {*_file_of(name).parts}
    except LookupError:
        return False


def _is_of_python(name: str) -> bool:
    """Tell whether an imported module is one of the standard library: a project may have one of the same name."""
    file = getattr(sys.modules.get(name), "__file__", None)
    is_named_so = name.partition(".")[0] in sys.stdlib_module_names
    return is_named_so and (not isinstance(file, str) or Path(file).is_relative_to(_PYTHON))


def _file_of(name: str) -> Path:
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str):
        raise LookupError(name)  # such as what was typed in
    return Path(file)


def _add(files: dict[Path, str], name: str, project: Path | None) -> None:
    """Add the file of an imported module, and those that belong to it."""
    file = _file_of(name)
    if name.startswith(_OURS):
        files |= {each: _hash(name, each) for each in (file, *sorted(file.parent.glob("*.py")))}
        return
    package = str(getattr(sys.modules.get(name), "__package__", None) or "")
    # The folder that the module was imported from: its own, or that of its outermost package.
    depth = len(package.split(".")) if package else 0
    home = file.parents[depth] if len(file.parents) > depth else file.parent
    first = [home] if home.name in _INSTALLED or project is None else [*dict.fromkeys((home, project))]
    own = [home / package.partition(".")[0]] if package else []
    places = _Places(first, own if home.name in _INSTALLED else first)
    waiting = [_Module(name, package, file)]
    while waiting:
        module = waiting.pop()
        if module.file not in files:
            files[module.file] = _hash(module.name, module.file)
            if module.file.suffix == ".py":
                waiting += places.imported(_names_in(module.file.read_bytes(), module.package))


def _hash(name: str, file: Path) -> str:
    return f"{name.rpartition('.')[0]}/{file.name} {sha256(file.read_bytes()).hexdigest()}"


class _Places:
    """The folders in which modules are looked for first, and those whose modules count."""

    def __init__(self, first: Sequence[Path], counting: Sequence[Path]) -> None:
        self._first = first
        self._counting = counting

    def imported(self, names: Iterable[str]) -> Iterator[_Module]:
        """Yield the modules that an import of ``names`` runs, if they count; where two may be meant, both."""
        for name in names:
            top = name.partition(".")[0]
            if top != _OURS[:-1]:
                found = [each for folder in self._first for each in self._along(name, [str(folder)])]
                yield from found or ([] if top in sys.stdlib_module_names else self._along(name, sys.path))

    def _along(self, name: str, path: list[str]) -> Iterator[_Module]:
        parts = name.split(".")
        for depth, part in enumerate(parts, 1):
            # By the last part of its name: with the whole one Python wants the packages above to be imported.
            spec = PathFinder.find_spec(part, path)
            if spec is None:
                return
            path = [*(spec.submodule_search_locations or ())]
            if spec.origin and spec.has_location and self._counts(Path(spec.origin)):
                package = parts[:depth] if path else parts[: depth - 1]
                yield _Module(".".join(parts[:depth]), ".".join(package), Path(spec.origin))
            if not path:
                return

    def _counts(self, file: Path) -> bool:
        return any(
            file.is_relative_to(folder) and not _INSTALLED & {*file.relative_to(folder).parts}
            for folder in self._counting
        )


def _names_in(data: bytes, package: str) -> Iterator[str]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = resolve_name(base, package) if node.level and package else base
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
