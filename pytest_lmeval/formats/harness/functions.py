"""Import the functions that task files name, under private module names, and seed random generators for them.

As in the harness, a module can import its neighbours: ``lm_eval.tasks.NAME`` is a folder of the same root. Substitutes
replace ``lm_eval`` and ``datasets``, which need not be installed. A missing third-party module is an error only when a
function uses it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import pickle
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import FunctionRef

_SUBSTITUTES = f"{__package__}.substitutes"
_PREFIX = "lmeval_harness_"
_TASKS = "lm_eval.tasks"
_SUBSTITUTED = ("lm_eval", "datasets")
# The modules of these packages that have a substitute, and the harness's folder of tasks.
_SUBSTITUTE_MODULES = (
    *("lm_eval.utils", "lm_eval.tasks", "datasets", "lm_eval.filters.extraction"),
    *("lm_eval.api.filter", "lm_eval.api.metrics", "lm_eval.api.registry"),
)
_DRAWS = re.compile(rb"rand|shuffle|(?:from|import)[ \t]+(?:\.|lm_eval\.tasks)")
_STARTS: dict[str, Any] = {}
"""The state of ``random`` after the import of each module that draws: many tasks share a module imported once."""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of every registered root."""

    def __init__(self) -> None:
        self.roots: dict[str, Path] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module of a root: a file, or a folder as a package without a file."""
        package, *rest = name.split(".")
        if package not in self.roots:
            return None
        place = self.roots[package].joinpath(*rest)
        file = place.with_name(f"{place.name}.py")
        if rest and file.is_file():
            return importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
        if not place.is_dir():
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module, and rewrites its imports."""

    def get_code(self, fullname: str) -> Any:
        """Return the module's code; write no cache beside the task file."""
        tree = _Imports(fullname.partition(".")[0]).visit(ast.parse(self.get_data(self.path), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


class _Imports(ast.NodeTransformer):
    """Replaces imports of the harness and ``datasets`` by substitutes, other missing modules by placeholders."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._guarded = 0

    def visit_Try(self, node: ast.Try) -> Any:  # ast's name
        # A module that catches a failing import must see it fail.
        self._guarded += 1
        try:
            return self.generic_visit(node)
        finally:
            self._guarded -= 1

    def visit_Import(self, node: ast.Import) -> Any:  # ast's name
        return [statement for alias in node.names for statement in self._import(alias)]

    def _import(self, alias: ast.alias) -> list[ast.stmt]:
        top = alias.name.partition(".")[0]
        if top in _SUBSTITUTED:
            name = _own_name(alias.name, self._package) if alias.asname else _SUBSTITUTES
            return [ast.Import([ast.alias(name, alias.asname or top)])]
        if not self._guarded and is_missing(top):
            return [_placeholder(alias.asname or top, alias.name)]
        return [ast.Import([alias])]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:  # ast's name
        name = node.module or ""
        top = name.partition(".")[0]
        if node.level:
            return node
        if top in _SUBSTITUTED:
            return ast.ImportFrom(_own_name(name, self._package), node.names, 0)
        if not self._guarded and is_missing(top):
            return [_placeholder(alias.asname or alias.name, f"{name}.{alias.name}") for alias in node.names]
        return node


def _own_name(name: str, package: str) -> str:
    """Return the module that replaces a module of the harness or ``datasets``; ``package`` has the harness's tasks."""
    if name == _TASKS or name.startswith(f"{_TASKS}."):
        return package + name.removeprefix(_TASKS)
    has_substitute = any(f"{each}.".startswith(f"{name}.") for each in _SUBSTITUTE_MODULES)
    return _SUBSTITUTES if has_substitute else f"{_SUBSTITUTES}.{name}"


def is_missing(top: str) -> bool:
    """Return True if no package of that name is installed."""
    try:
        return top not in sys.modules and importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        return True


def _placeholder(target: str, name: str) -> ast.stmt:
    call = f"__import__({_SUBSTITUTES!r}, fromlist=['Missing']).Missing({name!r})"
    return ast.parse(f"{target} = {call}").body[0]


_FINDER = _Finder()


def function_of(ref: FunctionRef, root: Path) -> Callable[..., Any]:
    """Return the function that ``ref`` names in a file of its folder or of ``root``, or in an installed module.

    Raise RecordRefused that names a missing module or function. Callers check that the run trusts the file.
    """
    module = _imported(ref, root)
    found = getattr(module, ref.name, None)
    if found is None:
        names = ", ".join(name for name in vars(module) if not name.startswith("_"))[:200]
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}; it has {names}")
    if not callable(found):
        raise RecordRefused("bad_type", "!function", f"{ref} is not a function")
    return found  # type: ignore[no-any-return]  # any callable


def start_of(function: Callable[..., Any]) -> Any:
    """Return the state of ``random`` after the import of the function's module; None if the import drew nothing."""
    return _STARTS.get(getattr(function, "__module__", ""))


@lru_cache(maxsize=4096)
def may_draw(ref: FunctionRef) -> bool:
    """Return True if the function's module contains words that suggest random draws, or imports that may draw."""
    return not ref.file.is_file() or _DRAWS.search(ref.file.read_bytes()) is not None


def _imported(ref: FunctionRef, root: Path) -> ModuleType:
    folder = ref.folder if not ref.folder.is_relative_to(root) else root
    name, file = ref.module, ref.file
    if file.is_file():
        name = ".".join([_registered(folder), *file.relative_to(folder).with_suffix("").parts])
    elif name.partition(".")[0] in _SUBSTITUTED:
        name = _own_name(name, _registered(folder))
    try:
        with seeded() as has_drawn:
            module = importlib.import_module(name)
            if has_drawn():
                _STARTS[name] = random.getstate()
        return module
    except Exception as error:
        detail = f"{ref.module}.py beside {ref.folder.name}/: {type(error).__name__}: {str(error)[:300]}"
        raise RecordRefused("import_error", "!function", detail) from error


def _registered(folder: Path) -> str:
    package = _PREFIX + hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    _FINDER.roots[package] = folder
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    return package


def source_digest(refs: Sequence[FunctionRef]) -> str:
    """Return a hash of the files of ``refs``, so that editing a function changes the task's hash."""
    digest = hashlib.sha256()
    for file in sorted({ref.file for ref in refs}):
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def needs_of(ref: FunctionRef) -> Sequence[str]:
    """Return the third-party packages that a function's module imports, without running it.

    Raise RecordRefused if the module has no such function, or imports an unknown name of the harness.
    """
    file = ref.file
    if not file.is_file():
        return () if ref.module.startswith(_SUBSTITUTE_MODULES) else (ref.module.partition(".")[0],)
    names, imported = _contents(file)
    # A module that makes names at run time may have any.
    if ref.name not in names and not names & {"*", "__getattr__"}:
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}")
    of_harness = sorted(each for each in imported if each.startswith("lm_eval"))
    if unknown := [each for each in of_harness if not each.startswith(_SUBSTITUTE_MODULES)]:
        raise RecordRefused("not_supported", "!function", f"{ref.module} imports {unknown[0]}")
    packages = dict.fromkeys(each.partition(".")[0] for each in sorted(imported))
    return [each for each in packages if each not in sys.stdlib_module_names and each not in _SUBSTITUTED]


def check_function(ref: FunctionRef) -> None:
    """Raise RecordRefused if the file or the installed package of a function is missing."""
    needs = needs_of(ref)
    if needs and not ref.file.is_file() and (needs[0] in _SUBSTITUTED or is_missing(needs[0])):
        detail = f"{ref.module}.py beside {ref.folder.name}/: ModuleNotFoundError: no such file, and no such package"
        raise RecordRefused("import_error", "!function", detail)


@lru_cache(maxsize=2048)
def _contents(file: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a module defines at its top level, and the modules that it imports there."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        detail = f"{file.name}: {type(error).__name__}: {error}"
        raise RecordRefused("import_error", "!function", detail) from None
    imported: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(node.module or "")
    return frozenset(name for node in tree.body for name in _names(node)), frozenset(imported)


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.For | ast.While | ast.With | ast.Expr):
        yield "*"
    elif isinstance(node, ast.If | ast.Try):
        handlers = node.handlers if isinstance(node, ast.Try) else []
        for each in [*node.body, *node.orelse, *(each for handler in handlers for each in handler.body)]:
            yield from _names(each)


@contextmanager
def seeded(seed: int = 0, other: int = 1234, start: Any = None) -> Iterator[Callable[[], bool]]:
    """Seed the random generators for the block; yield a function that returns True after a draw from one of them.

    ``seed`` is for ``random``, ``other`` for numpy and torch; the defaults are the harness's. ``start``, a state of
    ``random``, replaces ``seed``.
    """
    before = _states()

    def marks() -> list[bytes]:
        return [pickle.dumps(state) for _, state in _states()]

    try:
        random.seed(seed)
        if start is not None:
            random.setstate(start)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(other)
        if "torch" in sys.modules:
            sys.modules["torch"].default_generator.manual_seed(other)
        fresh = marks()
        # Ignore generators that were imported after the seeding.
        yield lambda: marks()[: len(fresh)] != fresh
    finally:
        for restore, state in before:
            restore(state)


def seed_of(row: Mapping[str, Any]) -> int:
    """Return a 32-bit number that depends only on the content of a row."""
    content = json.dumps(row, sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _states() -> list[tuple[Callable[[Any], object], Any]]:
    """Return the state of each imported generator, with the function that restores it."""
    states: list[tuple[Callable[[Any], object], Any]] = [(random.setstate, random.getstate())]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        states.append((generator.set_state, generator.get_state()))
    return states
