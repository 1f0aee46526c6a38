"""The source that an adapter's class is made of, as one hash."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import resolve_name
from pathlib import Path

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_OURS = "pytest_lmeval."


def source_hash(kind: type, module: str = "") -> str:
    """Return a SHA-256 over the files of a class, of its bases and of ``module``; "" where one cannot be read.

    To a file of a project belong the files that it imports and that are imported from the same folder, or one below;
    to one of this package those beside it.
    """
    names = [each.__module__ for each in kind.__mro__ if each.__module__ not in sys.stdlib_module_names]
    waiting = [*dict.fromkeys([*names, *([module] if module else [])])]
    files: dict[Path, str] = {}
    try:
        while waiting:
            name = waiting.pop()
            file = _file_of(name)
            if file not in files:
                files |= _hashes(name.rpartition(".")[0], file, *(_beside(file) if name.startswith(_OURS) else ()))
                waiting += _imported(file, name)
    except (OSError, LookupError):
        return ""
    return sha256("\n".join(sorted(files.values())).encode("utf-8", "backslashreplace")).hexdigest()


def is_of_project(kind: type) -> bool:
    """Tell whether a class is neither of Python, nor installed, nor of this package."""
    name = kind.__module__
    if name.startswith(_OURS) or name.partition(".")[0] in sys.stdlib_module_names:
        return False
    try:
        return not _INSTALLED & {*_file_of(name).parts}
    except LookupError:
        return False


def _file_of(name: str) -> Path:
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str):
        raise LookupError(name)  # such as what was typed in
    return Path(file)


def _beside(file: Path) -> list[Path]:
    return sorted(file.parent.glob("*.py"))


def _hashes(package: str, *files: Path) -> dict[Path, str]:
    return {file: f"{package}/{file.name} {sha256(file.read_bytes()).hexdigest()}" for file in files}


def _imported(file: Path, name: str) -> Iterator[str]:
    """Yield the modules of the project that a file of it imports."""
    package = str(getattr(sys.modules.get(name), "__package__", None) or "")
    # The folder that the module was imported from: its own, or that of its outermost package.
    depth = len(package.split(".")) if package else 0
    root = file.parents[depth] if len(file.parents) > depth else file.parent
    if name.startswith(_OURS) or root.name in _INSTALLED or file.suffix != ".py":
        return
    for wanted in _names_in(file.read_bytes(), package):
        other = getattr(sys.modules.get(wanted), "__file__", None)
        if isinstance(other, str) and _is_of(root, Path(other)):
            yield wanted


def _is_of(root: Path, file: Path) -> bool:
    return file.is_relative_to(root) and not _INSTALLED & {*file.relative_to(root).parts}


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
