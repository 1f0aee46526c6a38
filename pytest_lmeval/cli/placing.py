"""What ``lmeval add`` may write into a task folder: all of it is checked first, and written whole or not at all."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.ini import pytest_options
from pytest_lmeval.errors import UsageError
from pytest_lmeval.text import printable

# What pytest or Python runs, or reads settings from, by its name alone. Text files of these names are doctests.
_RUN = [
    "conftest.py",
    "task_*.py",
    "test_*.py",
    "*_test.py",
    "__init__.py",
    "__main__.py",
    "setup.py",
    "sitecustomize.py",
    "usercustomize.py",
    "test*.txt",
    "*.pth",
    "*.ini",
    "*.cfg",
    "*.toml",
]
_FOLDERS_READ = (".*", "*.egg-info", "*.dist-info", "__pycache__")
_LONGEST_DIFF = 1 << 18
_LONGEST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Placing:
    """A file to be put at ``path``; ``own`` are the files that the stored task of the same key has to itself."""

    source: Path
    path: Path
    data: bytes
    stored: Path | None
    own: frozenset[Path]


@dataclass(frozen=True, slots=True)
class Change:
    """A file whose content becomes ``data``; ``before`` is what it holds now, None where there is no file."""

    path: Path
    data: bytes
    before: bytes | None


def refused(placings: Sequence[Placing], folder: Path, *, force: bool) -> list[str]:
    """Return why the files cannot be put below ``folder``; with ``force`` files of others may be replaced."""
    patterns = [*_RUN, *_project_patterns(folder)]
    by_path: dict[Path, list[Placing]] = {}
    for placing in placings:
        by_path.setdefault(placing.path, []).append(placing)
    reasons = []
    for path, group in by_path.items():
        reason = _refusal(path, group, folder, patterns) or ("" if force else _not_own(path, group, folder))
        if reason:
            reasons.append(f"{group[0].source}: {path}: {reason}")
    return reasons


def changes(placings: Sequence[Placing]) -> list[Change]:
    """Return the files whose content is another than what is there, each once."""
    wanted = {placing.path: placing.data for placing in placings}
    found = [Change(path, data, path.read_bytes() if path.exists() else None) for path, data in wanted.items()]
    return [change for change in found if change.before != change.data]


def differences(found: Iterable[Change]) -> Iterator[str]:
    """Yield a unified diff of every file that is replaced."""
    for change in found:
        if change.before is None:
            continue
        try:
            texts = [data.decode("utf-8") for data in (change.before, change.data) if len(data) <= _LONGEST_DIFF]
        except UnicodeDecodeError:
            texts = []
        if len(texts) < 2:
            yield f"{change.path}: {len(change.before):,} bytes -> {len(change.data):,} bytes (no diff)"
            continue
        old, new = (text.split("\n") for text in texts)
        lines = [*difflib.unified_diff(old, new, f"{change.path} (now)", f"{change.path} (new)", lineterm="")]
        yield from map(printable, lines[:_LONGEST_SHOWN])
        if len(lines) > _LONGEST_SHOWN:
            yield f"... and {len(lines) - _LONGEST_SHOWN:,} more lines"


def write_all(wanted: Sequence[Change]) -> None:
    """Write every file; where one cannot be written, put all back as they were and raise UsageError."""
    missing = {folder for change in wanted for folder in change.path.parents if not folder.exists()}
    done: list[tuple[Change, int]] = []
    try:
        for change in wanted:
            done.append((change, change.path.stat().st_mode if change.before is not None else 0))
            write_atomically(change.path, change.data)
    except BaseException as error:
        left = _undo(done, missing)
        if not isinstance(error, OSError):
            raise
        what = f"could not be put back: {', '.join(left)}" if left else "nothing was added"
        raise UsageError(f"{done[-1][0].path}: cannot be written: {error.strerror}; {what}") from None


def _undo(done: Sequence[tuple[Change, int]], made: Iterable[Path]) -> list[str]:
    left = []
    for change, mode in reversed(done):
        try:
            if change.before is None:
                change.path.unlink(missing_ok=True)
            elif change.path.read_bytes() != change.before:
                write_atomically(change.path, change.before)
                os.chmod(change.path, mode)
        except NotADirectoryError:
            pass  # there is nothing at such a path
        except OSError:
            left.append(str(change.path))
    for folder in sorted(made, reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    return left


def _refusal(path: Path, group: Sequence[Placing], folder: Path, patterns: Sequence[str]) -> str:
    other = next((each for each in group if each.data != group[0].data), None)
    if other is not None:
        return f"{other.source} has another file for this place; rename one"
    if path.is_file() and path.read_bytes() == group[0].data:
        return ""
    # ``..`` and links alike: written is below the folder, and nowhere else.
    if path.resolve() != folder.resolve() / path.relative_to(folder):
        return "leads out of the task folder, or through a symbolic link"
    if path.exists() and not path.is_file():
        return "exists and is not a file"
    parts = path.relative_to(folder).parts
    if any(_fits(part, _FOLDERS_READ) for part in parts) or _fits(parts[-1], patterns) or _hides_a_module(path):
        return "never written: by its name, pytest or Python may run this file or read settings from it; rename it"
    return ""


def _not_own(path: Path, group: Sequence[Placing], folder: Path) -> str:
    if not path.exists() or path.read_bytes() == group[0].data or any(path == each.stored for each in group):
        return ""
    hint = "rename one, or replace it with --force"
    if not any(path in placing.own for placing in group):
        return f"another file has this name; {hint}"
    users = [user for user in _users(path, folder) if all(user != placing.stored for placing in group)]
    return f"{users[0]} uses this file, too; {hint}" if users else ""


def _users(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the files of the folder that name ``path``, or import it; to name a file of the same name will do."""
    named = re.compile(rb"(?<![\w.-])" + re.escape(os.fsencode(path.name)) + rb"(?![\w.-])")
    stem = re.escape(os.fsencode(path.stem))
    imported = re.compile(rb"^[ \t]*(?:from|import)\b.*(?<!\w)" + stem + rb"\b", re.MULTILINE)
    for file in sorted(folder.rglob("*")):
        if file == path or file.suffix not in (".yaml", ".yml", ".py") or not file.is_file():
            continue
        text = file.read_bytes()
        if named.search(text) or (file.suffix == path.suffix == ".py" and imported.search(text)):
            yield file


def _project_patterns(folder: Path) -> Iterator[str]:
    """Yield the names that the project's own settings have pytest run."""
    options: Mapping[str, object] = pytest_options([folder])[1]
    yield from _words(options.get("python_files", ""))
    arguments = _words(options.get("addopts", ""))
    for argument, after in pairwise([*arguments, ""]):
        name, equals, value = argument.partition("=")
        if name == "--doctest-modules":
            yield "*.py"
        elif name == "--doctest-glob":
            yield value if equals else after


def _words(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else str(value).split()


def _fits(name: str, patterns: Iterable[str]) -> bool:
    # Some file systems take CONFTEST.PY for conftest.py; of a pattern with a folder in it, the name alone decides.
    return any(fnmatchcase(name.casefold(), pattern.rpartition("/")[2].casefold()) for pattern in patterns)


def _hides_a_module(path: Path) -> bool:
    # pytest puts folders of tests at the front of sys.path.
    name = path.stem
    if path.suffix.casefold() != ".py" or not name.isidentifier():
        return False
    return name in sys.stdlib_module_names or name in sys.modules or find_spec(name) is not None
