"""Identify adapters and replicas, so that the cache and resumed runs reuse only answers from the same adapter."""

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
from pytest_lmeval.text import PACKAGE_FOLDERS, is_of_package

# Another API key gets the same answers, and a run without requests needs no key.
_ACCESS = "api_key"
# Set by the run, or part of the identity under another name.
_NOT_ITS_OWN = frozenset({"think_tags", "options", "fingerprint"})
# The maximum depth of nested objects to hash: configurations are shallow, and references may be circular.
_NEAR = 3
_OURS = "pytest_lmeval."
_PYTHON = Path(os.__file__).parent
_KNOWN: dict[int, Identity] = {}


class _Module(NamedTuple):
    """A module's name, the package from which its relative imports start, and its file."""

    name: str
    package: str
    file: Path


@dataclass(frozen=True, slots=True)
class Identity:
    """The key of an adapter, for the cache and for resumed runs.

    Two adapters have different keys if any known difference between them could affect answers. ``key`` is a SHA-256 of
    an adapter's name, class, spec, options, source and ``fingerprint``. If an adapter from outside this package has no
    ``fingerprint``, the hash also covers attributes with plain values, unless their names mark them as secret. The
    attributes of nested objects count if the objects' classes belong to the project. ``is_sure`` is True if the adapter
    has a ``fingerprint``, or a spec and readable source.
    """

    key: str
    is_sure: bool


def identity_of(adapter: Any) -> Identity:
    """Return the identity that ``adapter`` had at the first call; raise UsageError for an invalid ``fingerprint``."""
    if (found := _KNOWN.get(id(adapter))) is not None:
        return found
    if isinstance(own := getattr(adapter, "identity", None), Identity):
        return own  # of the adapter that it copies
    found = _identity(adapter, made_with(adapter))
    with suppress(TypeError):  # some objects have no weak references
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
    """Return an adapter's attribute ``options``, merged with the options that created the adapter, without API keys."""
    own = getattr(adapter, "options", None)
    options = {**made_with(adapter).options, **(own if isinstance(own, Mapping) else {})}
    return {name: value for name, value in options.items() if not str(name).startswith(_ACCESS)}


def _attributes(holder: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    given = [getattr(kind, "__slots__", ()) for kind in type(holder).__mro__]
    slots = [name for names in given for name in ((names,) if isinstance(names, str) else names)]
    for name in sorted({*getattr(holder, "__dict__", {}), *slots} - _NOT_ITS_OWN):
        value = getattr(holder, name, None)
        if not is_secret_name(name) and _is_plain(value, depth):
            yield name, _plain(value, depth)


def _is_plain(value: Any, depth: int = 0) -> bool:
    if isinstance(value, Mapping):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return depth < 20 and all(_is_plain(inner, depth + 1) for inner in value)
    if value is None or isinstance(value, str | bytes | int | float | Enum | PurePath):
        return True
    return depth < _NEAR and is_of_project(type(value))


def _plain(value: Any, depth: int = 0) -> Any:
    """Convert ``value`` into JSON, so that different values stay different; use ``repr`` for values that JSON lacks."""
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
    """Return a SHA-256 of the files of a class, its bases and ``module``, or "" if a file cannot be read.

    For a file of the project, the hash also covers the files that it imports from ``project`` or from its import
    folder. For a file of an installed package, the hash also covers imports from that package, and for a file of this
    package, the other files in the same folder. The function parses imports from the source, so earlier imports have no
    effect.
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
    """Return True unless the class is part of Python, of an installed package, or of this package."""
    name = kind.__module__
    if name.startswith(_OURS) or _is_of_python(name):
        return False
    try:
        return not is_of_package(str(_file_of(name)))
    except LookupError:
        return False


def _is_of_python(name: str) -> bool:
    """Return True if an imported module is from the standard library, not a project's module with the same name."""
    file = getattr(sys.modules.get(name), "__file__", None)
    is_named_so = name.partition(".")[0] in sys.stdlib_module_names
    return is_named_so and (not isinstance(file, str) or Path(file).is_relative_to(_PYTHON))


def _file_of(name: str) -> Path:
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str):
        raise LookupError(name)  # such as a class from an interactive session
    return Path(file)


def _add(files: dict[Path, str], name: str, project: Path | None) -> None:
    """Add the hash of an imported module's file to ``files``, and the hashes of the files that it imports."""
    file = _file_of(name)
    if name.startswith(_OURS):
        files |= {each: _hash(name, each) for each in (file, *sorted(file.parent.glob("*.py")))}
        return
    package = str(getattr(sys.modules.get(name), "__package__", None) or "")
    # The import folder contains the module, or the outermost package of the module.
    depth = len(package.split(".")) if package else 0
    home = file.parents[depth] if len(file.parents) > depth else file.parent
    first = [home] if home.name in PACKAGE_FOLDERS or project is None else [*dict.fromkeys((home, project))]
    own = [home / package.partition(".")[0]] if package else []
    counting = own if home.name in PACKAGE_FOLDERS else first
    waiting = [_Module(name, package, file)]
    while waiting:
        module = waiting.pop()
        if module.file not in files:
            files[module.file] = _hash(module.name, module.file)
            if module.file.suffix == ".py":
                for each in _names_in(module.file.read_bytes(), module.package):
                    waiting += [found for found in _modules(each, first) if _counts(found.file, counting)]


def _hash(name: str, file: Path) -> str:
    return f"{name.rpartition('.')[0]}/{file.name} {sha256(file.read_bytes()).hexdigest()}"


def _modules(name: str, first: Sequence[Path]) -> Iterable[_Module]:
    """Return the modules that an import of ``name`` runs; search the ``first`` folders, and then ``sys.path``."""
    top = name.partition(".")[0]
    if top == _OURS[:-1]:
        return ()
    found = [each for folder in first for each in _along(name, [str(folder)])]
    return found or (() if top in sys.stdlib_module_names else _along(name, sys.path))


def _along(name: str, path: list[str]) -> Iterator[_Module]:
    parts = name.split(".")
    for depth, part in enumerate(parts, 1):
        # Look for each part of the name in turn: to find the whole name, Python must import its packages.
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            return
        path = [*(spec.submodule_search_locations or ())]
        if spec.origin and spec.has_location:
            package = parts[:depth] if path else parts[: depth - 1]
            yield _Module(".".join(parts[:depth]), ".".join(package), Path(spec.origin))
        if not path:
            return


def _counts(file: Path, folders: Sequence[Path]) -> bool:
    return any(file.is_relative_to(folder) and not is_of_package(str(file.relative_to(folder))) for folder in folders)


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


REPLICATED = (
    *("exact", "trusted", "tells_cost", "answers", "base_url", "known_secrets", "options", "request_options"),
    *("requests_per_minute", "tokens_per_minute", "unnamed_options"),
)
"""The attributes that the adapter ``ray`` copies from its replicas' adapter."""


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """Facts about the model in a replica's process.

    ``attributes`` are the values, in the replica's adapter, of the attributes in REPLICATED. ``generates`` is True if
    the model supports completions, and ``scores`` is True if it supports log-likelihoods. ``streams`` is True if the
    model answers many requests concurrently. ``version`` is this package's version in the replica's process.
    """

    name: str
    identity: Identity
    fingerprint: str
    manifest: Mapping[str, Any]
    attributes: Mapping[str, Any]
    generates: bool
    scores: bool
    streams: bool
    version: str
    node: str
    pid: int

    @property
    def place(self) -> str:
        """The replica's process and node, for messages."""
        return f"pid {self.pid} on node {self.node}"


def difference(first: ReplicaFacts, other: ReplicaFacts) -> str:
    """Describe the first difference between the models of ``other`` and ``first``; return "" if they are the same."""
    for name in ("version", "name", "fingerprint", "manifest"):
        one, two = getattr(first, name), getattr(other, name)
        if one != two:
            what = "version of pytest-lmeval" if name == "version" else name
            return f"its {what} is {two!r:.200}, that of the first replica ({first.place}) is {one!r:.200}"
    if first.identity != other.identity:
        return (
            f"its source, options or attributes are not those of the first replica ({first.place}); "
            "with a fingerprint, the attributes of an adapter would not count"
        )
    return ""
