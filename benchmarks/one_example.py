"""Counts what has a part in one example: files of the package, their functions, and switches between files.

Usage: ``python benchmarks/one_example.py [--list] [--write]``. Three ways are counted: a line of JSONL by the
library, the same line under pytest, and a row of an eval function that asks once. A file or a function counts if it
runs between the load of the file and the board; what only importing a module runs does not count. A switch is a call
into another file than the call before it in the same thread. The smaller the figures, the sooner somebody has read what
happens to an example. ``--write`` puts the figures, and the files and lines of each folder, into CONTRIBUTING.md, at
each release.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval import __version__
from pytest_lmeval.adapters.toy import ToyAdapter
from pytest_lmeval.loading import load_tasks
from pytest_lmeval.run.library import run_leaderboard

PACKAGE = Path(pytest_lmeval.__file__).parent
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
BEGIN, END = "<!-- figures of benchmarks/one_example.py -->\n", "<!-- end of the figures -->\n"
WORDS = {"library": "by the library", "pytest": "under pytest", "function": "as a row of an eval function"}
_LINE = {"id": "one", "prompt": "1 + 1 =", "targets": ["2"], "metric": "exact_match"}
_FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("sums", data=[{"id": "one", "question": "1 + 1 ="}])
async def test_sums(row, lm):
    answer = await lm.ask(row["question"])
    lm.score("right", answer.text == "2")
"""
WAYS = {
    "library": ("one.jsonl", json.dumps(_LINE) + "\n"),
    "pytest": ("one.jsonl", json.dumps(_LINE) + "\n"),
    "function": ("test_one.py", _FUNCTION),
}
"""Each way with the name and the text of its file."""


class Calls:
    """Notes which functions of the package are called, in the order of each thread, from ``start`` to ``stop``."""

    def __init__(self) -> None:
        # Threads take turns as they like: their calls are kept apart.
        self._seen: dict[int, list[tuple[str, str]]] = {}
        self._importing = threading.local()

    @property
    def seen(self) -> list[tuple[str, str]]:
        """The calls of one thread after those of the other."""
        return [call for calls in self._seen.values() for call in calls]

    def start(self) -> None:
        """Begin to note."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> None:
        """Note no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            self._importing.depth = self._depth + (1 if event == "call" else -1)
        # A class body is no function, and a module is found before it is imported.
        elif (
            event == "call" and not self._depth and code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "find_spec"
        ):
            path = Path(code.co_filename)
            if path.is_relative_to(PACKAGE):
                seen = self._seen.setdefault(threading.get_ident(), [])
                seen.append((path.relative_to(PACKAGE).as_posix(), code.co_qualname))

    @property
    def _depth(self) -> int:
        return int(getattr(self._importing, "depth", 0))


class _Between:
    """A plugin that notes from the collection of the first file to the end of the session."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Any:
        self._calls.start()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Any:
        try:
            return (yield)
        finally:
            self._calls.stop()


def follow(way: str, path: Path) -> list[tuple[str, str]]:
    """Return the functions that the example of the file at ``path`` passes through, each with its file, in order."""
    calls = Calls()
    if way == "library":
        calls.start()
        run_leaderboard(load_tasks(path), ToyAdapter())
        calls.stop()
    else:
        # Plugins that are merely installed have their own ways.
        without = [f"-pno:{name}" for name in ("randomly", "cacheprovider", "asyncio", "anyio", "hypothesispytest")]
        places = [f"--rootdir={path.parent}", f"--lm-report-dir={path.parent / 'reports'}"]
        pytest.main([str(path), "--lm-adapter=toy", "-q", *without, *places], plugins=[_Between(calls)])
    return calls.seen


def count(way: str) -> dict[str, Any]:
    """Return ``files`` (their paths), and the numbers of ``functions`` and ``switches``, of one way.

    It is counted in a process of its own: what another way imported or kept has no part in it.
    """
    name, text = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="lmeval-one-") as folder:
        path = Path(folder, name)
        path.write_text(text)
        command = [sys.executable, __file__, "--way", way, "--path", str(path)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
    counted: dict[str, Any] = json.loads(output.splitlines()[-1])
    return counted


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


def written(counted: dict[str, dict[str, Any]]) -> str:
    """Return the part of CONTRIBUTING.md that has the figures, between its marks."""
    heading = [
        "| one example passes through | files | functions | switches between files |",
        "| --- | ---: | ---: | ---: |",
    ]
    ways = [
        f"| {WORDS[way]} | {len(of['files'])} | {of['functions']} | {of['switches']} |" for way, of in counted.items()
    ]
    return "\n".join([f"The figures of version {__version__}:", "", *heading, *ways, "", *sizes(), ""])


def write(counted: dict[str, dict[str, Any]]) -> None:
    """Put the figures into CONTRIBUTING.md."""
    before, _, rest = CONTRIBUTING.read_text("utf-8").partition(BEGIN)
    CONTRIBUTING.write_text(f"{before}{BEGIN}{written(counted)}{END}{rest.partition(END)[2]}", "utf-8")


def main() -> None:
    """Print the figures of each way, or write them down."""
    parser = argparse.ArgumentParser(description="Count what has a part in one example.")
    parser.add_argument("--list", action="store_true", help="name the files")
    parser.add_argument("--write", action="store_true", help="put the figures into CONTRIBUTING.md")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, and nothing else")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        seen = follow(options.way, options.path)
        switches = sum(before != after for (before, _), (after, _) in pairwise(seen))
        files = sorted({file for file, _ in seen})
        print(json.dumps({"files": files, "functions": len({*seen}), "switches": switches}))
        return
    counted = {way: count(way) for way in WAYS}
    if options.json:
        print(json.dumps({"ways": counted}))
        return
    for way, figures in counted.items():
        print(f"{way}: {len(figures['files'])} files, {figures['functions']} functions, {figures['switches']} switches")
        if options.list:
            print("".join(f"  {name}\n" for name in figures["files"]), end="")
    if options.write:
        write(counted)


if __name__ == "__main__":
    main()
