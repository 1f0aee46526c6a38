"""Import the functions that task files name, under private module names, and seed random generators for them.

A module can import files in its own folder, and task folders, even the installed harness's, as ``lm_eval.tasks.NAME``.
Substitutes replace the rest of ``lm_eval`` and ``datasets``, which need not be installed. A missing third-party module
is an error only when a function uses it.
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
_PRIVATE = re.compile(rf"{_PREFIX}[0-9a-f]*\.?")
_TASKS = "lm_eval.tasks"
_SUBSTITUTED = ("lm_eval", "datasets")
# Modules of the harness and ``datasets`` that have a substitute, and the harness's folder of tasks.
_SUBSTITUTE_MODULES = (
    *("lm_eval.utils", "lm_eval.tasks", "datasets", "lm_eval.filters.extraction"),
    *("lm_eval.api.filter", "lm_eval.api.metrics", "lm_eval.api.registry"),
)
_DRAWS = re.compile(rb"rand|shuffle|(?:from|import)[ \t]+(?:\.|lm_eval\.tasks)")
_IMPORTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_SYS_PATH = b"sys.path"
Roots = tuple[Path, ...]
"""Folders of tasks: a module's own folder first, then others from which the module may import."""
_STARTS: dict[str, Any] = {}
"""The state of ``random`` after the import of each module that draws; many tasks share a module imported once."""


def installed_root() -> Path | None:
    """Return the tasks folder of the installed lm-eval without importing it, or None if lm-eval is not installed."""
    spec = importlib.util.find_spec("lm_eval")
    folders = (Path(place) / "tasks" for place in (spec and spec.submodule_search_locations) or ())
    return next((folder.resolve() for folder in folders if folder.is_dir()), None)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of registered packages; each package represents the first of its roots."""

    def __init__(self) -> None:
        self.roots: dict[str, Roots] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module in a root: a file, or a folder as a package."""
        package, *rest = name.split(".")
        if package not in self.roots:
            return None
        place = self.roots[package][0].joinpath(*rest)
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py") if rest else ():
            if file.is_file():
                return importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
        if not place.is_dir():
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module, and rewrites its imports."""

    def get_code(self, fullname: str) -> Any:
        """Return the module's code without writing a cache into the module's folder."""
        data = self.get_data(self.path)
        imports = _Imports(Path(self.path), _FINDER.roots[fullname.partition(".")[0]], data)
        tree = ast.fix_missing_locations(imports.visit(ast.parse(data, self.path)))
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Imports(ast.NodeTransformer):
    """Replaces imports of the harness and ``datasets`` with substitutes, and other missing modules with placeholders.

    A file in the module's folder, or in a folder above, replaces a missing module of the same name. If the module's
    source inserts a folder into ``sys.path``, the file also replaces an installed module of that name.
    """

    def __init__(self, file: Path, roots: Roots, source: bytes) -> None:
        self._file = file
        self._roots = roots
        self._uses_path = _SYS_PATH in source
        self._inserts_path = _SYS_PATH + b".insert" in source
        self._guarded = 0

    def visit_Try(self, node: ast.Try) -> Any:  # ast's name
        # A module that catches a failed import must see the failure.
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
            name = _own_name(alias.name, (), self._file, self._roots) if alias.asname else _SUBSTITUTES
            return [ast.Import([ast.alias(name, alias.asname or top)])] if name else _raising(alias.name, ())
        if own := self._beside(alias.name):
            # Without "as", the statement binds the first part of the name.
            first = own.removesuffix(alias.name.removeprefix(top))
            binds = [ast.alias(own, alias.asname)] if alias.asname else [ast.alias(own, "_"), ast.alias(first, top)]
            return [ast.Import([each]) for each in binds]
        if self._is_lost(top):
            return [_placeholder(alias.asname or top, alias.name)]
        return [ast.Import([alias])]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:  # ast's name
        name = node.module or ""
        top = name.partition(".")[0]
        if node.level:
            return node
        if top in _SUBSTITUTED:
            names = [alias.name for alias in node.names]
            own = _own_name(name, names, self._file, self._roots)
            return ast.ImportFrom(own, node.names, 0) if own else _raising(name, names)
        if own := self._beside(name):
            return ast.ImportFrom(own, node.names, 0)
        if self._is_lost(top):
            return [_placeholder(alias.asname or alias.name, f"{name}.{alias.name}") for alias in node.names]
        return node

    def _beside(self, name: str) -> str:
        top = name.partition(".")[0]
        is_wanted = is_missing(top) or (self._inserts_path and top not in sys.stdlib_module_names)
        return module_beside(name, self._file, self._roots) if is_wanted else ""

    def _is_lost(self, top: str) -> bool:
        # A module that changes sys.path may import modules that cannot be found yet.
        return not self._guarded and not self._uses_path and is_missing(top)


def module_beside(name: str, file: Path, roots: Roots) -> str:
    """Return the private name of the module ``name`` in the nearest folder around ``file`` within its root, or ""."""
    for folder in file.parents:
        if not folder.is_relative_to(roots[0]):
            break
        top, whole = folder / name.partition(".")[0], folder.joinpath(*name.split("."))
        if any(each.is_file() for each in (top.with_suffix(".py"), top / "__init__.py", whole.with_suffix(".py"))):
            return ".".join([_registered(roots), *folder.relative_to(roots[0]).parts, name])
    return ""


def _own_name(name: str, names: Sequence[str], file: Path, roots: Roots) -> str:
    """Return the replacement for a module of the harness or ``datasets``, from which ``file`` imports ``names``.

    Return "" for a module of tasks that no root contains.
    """
    if name == _TASKS or name.startswith(f"{_TASKS}."):
        parts, own, last = name.split(".")[2:], roots[0], installed_root()
        # As in the harness, the installed folder comes first, except for modules in a checkout of the harness.
        ordered = dict.fromkeys((own, last, *roots) if own.parts[-2:] == ("lm_eval", "tasks") else (last, *roots))
        root = next((each for each in ordered if each and _has(each.joinpath(*parts), names, file)), None)
        return ".".join([_registered((root, *(each for each in roots if each != root))), *parts]) if root else ""
    has_substitute = any(f"{each}.".startswith(f"{name}.") for each in _SUBSTITUTE_MODULES)
    return _SUBSTITUTES if has_substitute else f"{_SUBSTITUTES}.{name}"


def _has(place: Path, names: Sequence[str], file: Path) -> bool:
    """Return True if ``place`` is a module other than ``file``, or a package from which ``names`` can be imported."""
    module, package = place.with_name(f"{place.name}.py"), place / "__init__.py"
    if module.is_file() and module != file:
        return True
    inner = [(place / f"{each}.py", place / each) for each in names]
    has_all = all((one.is_file() and one != file) or folder.is_dir() for one, folder in inner)
    return place.is_dir() and (has_all or (package.is_file() and package.stat().st_size > 0))


def is_missing(top: str) -> bool:
    """Return True if no package named ``top`` is installed."""
    try:
        return top not in sys.modules and importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        return True


def _placeholder(target: str, name: str) -> ast.stmt:
    call = f"__import__({_SUBSTITUTES!r}, fromlist=['Missing']).Missing({name!r})"
    return ast.parse(f"{target} = {call}").body[0]


def _raising(module: str, names: Sequence[str]) -> list[ast.stmt]:
    return ast.parse(f"raise ImportError({_missed(module, names)!r})").body


def _missed(module: str, names: Sequence[str]) -> str:
    """Return the message for a module of tasks whose ``names`` no root contains."""
    of = f" {', '.join(names)} of" if names else ""
    return f"no{of} {module} in the folders of tasks{'' if installed_root() else ', and lm-eval is not installed'}"


_FINDER = _Finder()


def function_of(ref: FunctionRef, roots: Roots) -> Callable[..., Any]:
    """Return the function that ``ref`` names in a file of its folder or of ``roots``, or in an installed module.

    Raises RecordRefused, which names any missing module or function. Callers must check first that the run trusts the
    file.
    """
    module = _imported(ref, roots)
    found = getattr(module, ref.name, None)
    if found is None:
        names = ", ".join(name for name in vars(module) if not name.startswith("_"))[:200]
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}; it has {names}")
    if not callable(found):
        raise RecordRefused("bad_type", "!function", f"{ref} is not a function")
    return found  # type: ignore[no-any-return]  # any callable


def start_of(function: Callable[..., Any]) -> Any:
    """Return the state of ``random`` after the import of the function's module, or None if the import drew nothing."""
    return _STARTS.get(getattr(function, "__module__", ""))


@lru_cache(maxsize=4096)
def may_draw(ref: FunctionRef, roots: Roots) -> bool:
    """Return True if the function's module contains words that suggest random draws, or imports that may draw."""
    if not ref.file.is_file():
        return True
    data = ref.file.read_bytes()
    imported = (found[1].decode() for found in _IMPORTED.finditer(data))
    return _DRAWS.search(data) is not None or any(module_beside(each, ref.file, _of(ref, roots)) for each in imported)


def _of(ref: FunctionRef, roots: Roots) -> Roots:
    """Return the roots of a function's module, beginning with the root that contains the module."""
    return roots if ref.folder.is_relative_to(roots[0]) else (ref.folder, *roots)


def _imported(ref: FunctionRef, roots: Roots) -> ModuleType:
    name, file, own = ref.module, ref.file, _of(ref, roots)
    if file.is_file():
        name = ".".join([_registered(own), *file.relative_to(own[0]).with_suffix("").parts])
    elif name.partition(".")[0] in _SUBSTITUTED:
        name = _own_name(name, (), file, own) or name
    try:
        with seeded() as has_drawn:
            module = importlib.import_module(name)
            if has_drawn():
                _STARTS[name] = random.getstate()
        return module
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {_PRIVATE.sub('', str(error))[:300]}"
        raise RecordRefused(
            "import_error", "!function", f"{ref.module}.py beside {ref.folder.name}/: {text}"
        ) from error


def _registered(roots: Roots) -> str:
    place = "\0".join(map(str, roots))
    package = _PREFIX + hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    _FINDER.roots[package] = roots
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


def needs_of(ref: FunctionRef, roots: Roots) -> Sequence[str]:
    """Return the third-party packages that a function's module imports, without running the module.

    Raises RecordRefused if the module has no such function, or imports an unknown name from the harness.
    """
    file = ref.file
    if not file.is_file():
        return () if ref.module.startswith(_SUBSTITUTE_MODULES) else (ref.module.partition(".")[0],)
    names, _ = _contents(file)
    # A module that creates names at run time may define any name.
    if ref.name not in names and not names & {"*", "__getattr__"}:
        raise RecordRefused("bad_value", "!function", f"{ref.module} has no {ref.name}")
    packages, fault = _packages(file, _of(ref, roots))
    if fault:
        raise RecordRefused("import_error", "!function", f"{ref.module} imports a missing module: {fault}")
    return packages


@lru_cache(maxsize=2048)
def _packages(file: Path, roots: Roots) -> tuple[Sequence[str], str]:
    """Return the third-party packages that a module imports, and, if it cannot import from the harness, the reason."""
    packages: dict[str, None] = {}
    uses_path = _SYS_PATH in file.read_bytes()
    for name, names in sorted(_contents(file)[1].items()):
        top = name.partition(".")[0]
        if top == "lm_eval" and not name.startswith(_SUBSTITUTE_MODULES):
            return (), f"{name} has no substitute"
        if top == "lm_eval" and not _own_name(name, names, file, roots):
            return (), _missed(name, names)
        is_own = top in sys.stdlib_module_names or top in _SUBSTITUTED or module_beside(name, file, roots)
        if not is_own and not (uses_path and is_missing(top)):
            packages[top] = None
    return [*packages], ""


@lru_cache(maxsize=2048)
def _contents(file: Path) -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
    """Return the names that a module defines at its top level, and the names that it imports there, by module."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        detail = f"{file.name}: {type(error).__name__}: {error}"
        raise RecordRefused("import_error", "!function", detail) from None
    imported: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported |= dict.fromkeys((alias.name for alias in node.names), ())
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported[node.module or ""] = tuple(alias.name for alias in node.names)
    return frozenset(name for node in tree.body for name in _names(node)), imported


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

    ``seed`` seeds ``random``, and ``other`` seeds numpy and torch; both defaults are the harness's. ``start``, a state
    of ``random``, replaces ``seed``.
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
    """Return a 32-bit number that depends only on a row's content."""
    content = json.dumps(row, sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _states() -> list[tuple[Callable[[Any], object], Any]]:
    """Return each imported generator's state, with the function that restores it."""
    states: list[tuple[Callable[[Any], object], Any]] = [(random.setstate, random.getstate())]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        states.append((generator.set_state, generator.get_state()))
    return states
