"""The functions that task files name: modules beside them under private names, with substitutes for what they import.

A module finds its neighbours as in the harness: ``lm_eval.tasks.NAME`` is a folder of the same root. What it imports of
``lm_eval`` and ``datasets`` are substitutes, so that neither has to be installed; a module of a third party that is
missing is an error where it is used.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import random
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.chance import seeded
from pytest_lmeval.formats.harness.config import FunctionRef

_SUBSTITUTES = f"{__package__}.substitutes"
_PREFIX = "lmeval_harness_"
_TASKS = "lm_eval.tasks"
SUBSTITUTED = ("lm_eval", "datasets")
"""The packages with substitutes for what functions of tasks import of them."""
_DRAWS = re.compile(rb"rand|shuffle|(?:from|import)[ \t]+(?:\.|lm_eval\.tasks)")
_STARTS: dict[str, Any] = {}
"""The states in which modules have left ``random``, by their names: they are imported once, and used by many tasks."""


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of every root that a function was asked of."""

    def __init__(self) -> None:
        self.roots: dict[str, Path] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return how to load a module of a root: a file, or a folder as a package without a file."""
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
    """Loads a module with other modules instead of those that it imports of the harness."""

    def get_code(self, fullname: str) -> Any:
        """Return the module's code; nothing is written beside a task file."""
        tree = _Imports(fullname.partition(".")[0]).visit(ast.parse(self.get_data(self.path), self.path))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)


class _Imports(ast.NodeTransformer):
    """Rewrites imports: of the harness and ``datasets`` to substitutes, of what is missing to placeholders."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._guarded = 0

    def visit_Try(self, node: ast.Try) -> Any:  # ast's name
        # A module that expects that an import fails is to see it fail.
        self._guarded += 1
        try:
            return self.generic_visit(node)
        finally:
            self._guarded -= 1

    def visit_Import(self, node: ast.Import) -> Any:  # ast's name
        return [statement for alias in node.names for statement in self._import(alias)]

    def _import(self, alias: ast.alias) -> list[ast.stmt]:
        top = alias.name.partition(".")[0]
        if top in SUBSTITUTED:
            name = _own_name(alias.name, self._package) if alias.asname else f"{_SUBSTITUTES}.{top}"
            return [ast.Import([ast.alias(name, alias.asname or top)])]
        if not self._guarded and is_missing(top):
            return [_placeholder(alias.asname or top, alias.name)]
        return [ast.Import([alias])]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:  # ast's name
        name = node.module or ""
        top = name.partition(".")[0]
        if node.level:
            return node
        if top in SUBSTITUTED:
            return ast.ImportFrom(_own_name(name, self._package), node.names, 0)
        if not self._guarded and is_missing(top):
            return [_placeholder(alias.asname or alias.name, f"{name}.{alias.name}") for alias in node.names]
        return node


def _own_name(name: str, package: str) -> str:
    """Return the module that takes the place of one of the harness or ``datasets``; its tasks are those of a root."""
    is_task = name == _TASKS or name.startswith(f"{_TASKS}.")
    return package + name.removeprefix(_TASKS) if is_task else f"{_SUBSTITUTES}.{name}"


def is_missing(top: str) -> bool:
    """Tell whether no package of that name is installed."""
    try:
        return top not in sys.modules and importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        return True


def _placeholder(target: str, name: str) -> ast.stmt:
    call = f"__import__({_SUBSTITUTES + '.missing'!r}, fromlist=['Missing']).Missing({name!r})"
    return ast.parse(f"{target} = {call}").body[0]


_FINDER = _Finder()


def function_of(ref: FunctionRef, root: Path) -> Callable[..., Any]:
    """Return the function that ``ref`` names: of a file in its folder, of ``root``, or of an installed module.

    Raise RecordRefused that says what is missing. Only files that a run trusts get here.
    """
    module = _module(ref, root)
    found = getattr(module, ref.name, None)
    if found is None:
        names = ", ".join(name for name in vars(module) if not name.startswith("_"))[:200]
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}; it has {names}")
    if not callable(found):
        raise RecordRefused("bad_type", "!function", f"{ref} is no function")
    return found  # type: ignore[no-any-return]  # whatever can be called


def start_of(function: Callable[..., Any]) -> Any:
    """Return the state in which the function's module has left ``random`` when it was imported, None if untouched."""
    return _STARTS.get(getattr(function, "__module__", ""))


@lru_cache(maxsize=4096)
def may_draw(ref: FunctionRef) -> bool:
    """Tell by the text of its module whether a function may draw at random; one that imports others may."""
    return not ref.file.is_file() or _DRAWS.search(ref.file.read_bytes()) is not None


def _module(ref: FunctionRef, root: Path) -> ModuleType:
    folder = ref.folder if not ref.folder.is_relative_to(root) else root
    name, file = ref.module, ref.file
    if file.is_file():
        name = ".".join([_registered(folder), *file.relative_to(folder).with_suffix("").parts])
    elif name.partition(".")[0] in SUBSTITUTED:
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
    """Return a hash of the files of ``refs``: an edited function is another task."""
    digest = hashlib.sha256()
    for file in sorted({ref.file for ref in refs}):
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
