"""Find the task files that depend on files changed since a commit."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.text import OURS, is_of_package

# A change to one of these files may affect any task.
_FOR_ALL = ("conftest.py", "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "requirements*.txt", "*.lock")
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Touched:
    """The task files that changes affect; None means all task files, and ``why`` is the reason."""

    files: frozenset[Path] | None
    why: str = ""


class Dependencies:
    """Finds the files that each file of a project depends on.

    A module depends on the modules that it imports and on the files that its code opens. A task file depends on the
    files that pytest opens to collect it. ``root`` is the project's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._opened: dict[str, set[str]] = {}
        self._collected = ""

    def watch(self) -> None:
        """Start recording every project file that this process opens."""
        sys.addaudithook(self._see)

    def collect(self, path: Path | None) -> None:
        """From now on, attribute files to ``path``, the collected task file, if no project code opens them."""
        self._collected = "" if path is None else str(path)

    def add(self, path: Path, file: Path) -> None:
        """Record that the file ``path`` depends on ``file``."""
        self._opened.setdefault(str(path), set()).add(str(file))

    def of(self, path: Path) -> set[Path]:
        """Return ``path`` and all files that it depends on, directly or indirectly."""
        found, left = set[str](), [str(path)]
        while left:
            each = left.pop()
            if each not in found:
                found.add(each)
                left += [*self._opened.get(each, ()), *self._imported(each)]
        return {Path(each) for each in found}

    def _see(self, event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str) or not arguments[0].startswith(self._root):
            return
        opened = arguments[0]
        if opened.endswith(".pyc"):
            try:
                opened = source_from_cache(opened)
            except ValueError:
                return
        opener = self._opener(sys._getframe(1)) or self._collected
        if opener and opener != opened:
            self._opened.setdefault(opener, set()).add(opened)

    def _opener(self, frame: FrameType | None) -> str:
        while frame is not None:
            if self._is_own(frame.f_code.co_filename):
                return frame.f_code.co_filename
            frame = frame.f_back
        return ""

    def _is_own(self, path: str) -> bool:
        return path.startswith(self._root) and not path.startswith(OURS) and not is_of_package(path)

    def _imported(self, path: str) -> Iterator[str]:
        if not path.endswith(".py"):
            return
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._modules(alias.name)
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                places = [str(Path(path).parents[node.level - 1])] if node.level else None
                yield from self._modules(module, places)
                for alias in node.names:
                    yield from self._modules(f"{module}.{alias.name}".lstrip("."), places)

    def _modules(self, name: str, places: Sequence[str] | None = None) -> Iterator[str]:
        """Yield the project's files for a module and for the packages that contain it."""
        parts = name.split(".") if name else []
        for place in places or [each for each in sys.path if each.startswith(self._root)]:
            for length in range(len(parts) + 1):
                at = Path(place, *parts[:length])
                if length and (module := at.with_name(f"{at.name}.py")).is_file():
                    yield str(module)
                if (length or places) and (package := at / "__init__.py").is_file():
                    yield str(package)
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if places is None and isinstance(loaded, str) and self._is_own(loaded):
            yield loaded


def touched_since(
    ref: str, root: Path, files: Iterable[Path], dependencies: Dependencies, ignored: Sequence[str]
) -> Touched:
    """Return the task files among ``files`` that depend on a file in ``root`` that differs from the commit ``ref``.

    An untracked file counts as changed unless git ignores it. All task files are affected if a configuration file, or a
    file on which no task file depends, changed. Changed files that match ``ignored`` do not count; ``ignored`` holds
    patterns for file names, and folders that end with ``/``.
    """
    try:
        changed = _changed(ref, root)
    except _NoGit as error:
        return Touched(None, str(error))
    changed = [path for path in changed if not _is_ignored(path.relative_to(root).as_posix(), ignored)]
    needed = {file: dependencies.of(file) for file in files}
    known = set().union(*needed.values())
    unknown = [each for each in changed if each not in known or any(fnmatchcase(each.name, name) for name in _FOR_ALL)]
    if unknown:
        shown = ", ".join(each.relative_to(root).as_posix() for each in unknown[:_MOST_NAMED])
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        return Touched(None, f"{shown}{more} changed, which may affect any task (ini key lm_changed_ignore)")
    return Touched(frozenset(file for file, its in needed.items() if not its.isdisjoint(changed)))


def git_root(folder: Path) -> Path:
    """Return the root of the git repository that contains ``folder``, or ``folder`` if there is no repository."""
    try:
        found = _git(folder, "rev-parse", "--show-toplevel")
    except _NoGit:
        found = None
    return Path(found.removesuffix("\n")) if found else folder


class _NoGit(Exception):
    """An error that explains why git cannot list the changes."""


def _changed(ref: str, root: Path) -> list[Path]:
    """Return the files below ``root`` that differ from ``ref``, including both names of each renamed file."""
    if ref.startswith("-") or _git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}") is None:
        is_shallow = _git(root, "rev-parse", "--is-shallow-repository") == "true\n"
        if is_shallow:
            raise _NoGit(f"the shallow clone lacks {ref}: git fetch --unshallow, or fetch-depth: 0 in a workflow")
        raise _NoGit(f"git does not know {ref}: git fetch origin, or name a commit, branch or tag")
    tracked = _git(root, "diff", "--name-only", "--no-renames", "-z", ref, "--")
    others = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or others is None:
        raise _NoGit("git diff failed")
    return [root / name for name in f"{tracked}{others}".split("\0") if name]


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(root), "-c", "core.quotePath=false", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False)
    except OSError as error:
        raise _NoGit(f"git cannot run: {error.strerror}") from None
    return done.stdout if done.returncode == 0 else None


def _is_ignored(path: str, ignored: Sequence[str]) -> bool:
    return any(
        path.startswith(each) if each.endswith("/") else fnmatchcase(path.rpartition("/")[2], each) for each in ignored
    )
