"""Counts the files of the package that have a part in one example, by the library and under pytest.

Usage: ``python benchmarks/files_per_example.py [--list] [--sizes]``. A file counts if one of its functions runs
between the load of a one-line file and the board; what only importing a module runs does not count. The fewer there
are, the sooner somebody has read what happens to an example. ``--sizes`` adds the files and lines of each folder.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.adapters.toy import ToyAdapter
from pytest_lmeval.loading import load_tasks
from pytest_lmeval.run.library import run_leaderboard

PACKAGE = Path(pytest_lmeval.__file__).parent
LINE = {"id": "one", "prompt": "1 + 1 =", "targets": ["2"], "metric": "exact_match"}


class Files:
    """Notes the files whose functions are called, in every thread, from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._importing = threading.local()

    def start(self) -> None:
        """Begin to note."""
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)

    def stop(self) -> None:
        """Note no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _hear(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            self._importing.depth = self._depth + (1 if event == "call" else -1)
        # A class body is no function.
        elif event == "call" and not self._depth and code.co_flags & inspect.CO_OPTIMIZED:
            self.seen.add(code.co_filename)

    @property
    def _depth(self) -> int:
        return int(getattr(self._importing, "depth", 0))

    def of_package(self) -> list[str]:
        """Return the files of the package that were noted, by their paths in it."""
        paths = [Path(name) for name in self.seen]
        return sorted(path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE))


def by_library(path: Path) -> list[str]:
    """Return the files that have a part in loading and running the task at ``path``."""
    files = Files()
    files.start()
    run_leaderboard(load_tasks(path), ToyAdapter())
    files.stop()
    return files.of_package()


class _Between:
    """A plugin that notes from the collection of the first file to the end of the session."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Any:
        self._files.start()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Any:
        try:
            return (yield)
        finally:
            self._files.stop()


def by_pytest(path: Path) -> list[str]:
    """Return the files that have a part in ``pytest PATH --lm-adapter=toy``."""
    files = Files()
    arguments = [str(path), "--lm-adapter=toy", "-q", "-pno:randomly", "-pno:cacheprovider", f"--rootdir={path.parent}"]
    arguments += [f"--lm-report-dir={path.parent / 'reports'}"]
    pytest.main(arguments, plugins=[_Between(files)])
    return files.of_package()


WAYS: dict[str, Callable[[Path], list[str]]] = {"library": by_library, "pytest": by_pytest}


def count(way: str, folder: Path) -> list[str]:
    """Return the files by one way, counted in a process of its own: what another imported or kept stays out."""
    path = folder / "one.jsonl"
    path.write_text(json.dumps(LINE) + "\n")
    command = [sys.executable, __file__, "--way", way, "--path", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
    files: list[str] = json.loads(output.splitlines()[-1])
    return files


def sizes() -> list[str]:
    """Return a Markdown table of the Python files and lines of each folder, the package's own modules first."""
    lines: dict[str, list[int]] = {"": []}
    for path in sorted(PACKAGE.rglob("*.py")):
        folder, _, _ = path.relative_to(PACKAGE).as_posix().rpartition("/")
        lines.setdefault(folder.partition("/")[0], []).append(len(path.read_text("utf-8").splitlines()))
    rows = [
        f"| `{folder + '/' if folder else '*.py'}` | {len(found)} | {sum(found)} |" for folder, found in lines.items()
    ]
    everything = [count for found in lines.values() for count in found]
    total = f"| all | {len(everything)} | {sum(everything)} |"
    return ["| folder | files | lines |", "| --- | ---: | ---: |", *rows, total]


def main() -> None:
    """Print both figures, and the sizes where they are asked for."""
    parser = argparse.ArgumentParser(description="Count the files that have a part in one example.")
    parser.add_argument("--list", action="store_true", help="name the files")
    parser.add_argument("--sizes", action="store_true", help="add the files and lines of each folder")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(WAYS[options.way](options.path)))
        return
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="lmeval-files-") as folder:
            files = count(way, Path(folder))
        print(f"{way}: {len(files)} files")
        if options.list:
            print("".join(f"  {name}\n" for name in files), end="")
    if options.sizes:
        print("\n".join(["", *sizes()]))


if __name__ == "__main__":
    main()
