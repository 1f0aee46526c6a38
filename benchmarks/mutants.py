"""Measures how many small faults the tests find: mutants of the package, each run against the tests that reach it.

Usage: ``python benchmarks/mutants.py [--count 100] [--seed 1] [--only TEXT] [--reach FILE]``; hours. A first run of all
tests notes which functions each of them enters, and keeps that in the file of ``--reach``. A mutant changes one place
of one function: a comparison, a boolean, a number, a sign, a condition. It is killed if a test that enters the function
fails, or takes five minutes; the table names each survivor.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "pytest_lmeval"
# A fault in what these hold shows on a page, in a message, or in a table of names that tests read as data.
LEFT_OUT = ("schemas", "starter", "vendor")
SWAPPED: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
}
# Python runs this module at the start of every process of the tests, forks and workers among them.
REACHES = """
import atexit, json, os, sys, threading
INSIDE, FOUND = {inside!r}, {found!r}
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if code not in seen:
        seen.add(code)
def write():
    test = os.environ.get("REACHING_TEST")
    ours = [code for code in [*seen] if code.co_filename.startswith(INSIDE)]
    names = [[code.co_filename[len(INSIDE):], code.co_firstlineno] for code in ours]
    if test and names:
        with open(os.path.join(FOUND, str(os.getpid())), "a") as file:
            file.write(json.dumps([test, names]) + chr(10))
    seen.clear()
def begin():
    threading.settrace(note)
    sys.settrace(note)
atexit.register(write)
os.register_at_fork(after_in_child=seen.clear)
begin()
"""
PLUGIN = """
import os, pytest, sitecustomize
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    sitecustomize.seen.clear()
    sitecustomize.begin()
    # A run of pytest within the test gives PYTEST_CURRENT_TEST other values.
    os.environ["REACHING_TEST"] = item.nodeid
    try:
        return (yield)
    finally:
        sitecustomize.write()
        del os.environ["REACHING_TEST"]
"""


@dataclass(frozen=True)
class Mutant:
    """One change: ``new`` in the place of the text from ``start`` to ``end``, offsets in bytes of the file."""

    file: str
    line: int
    function: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.old} -> {self.new}"


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Yield all mutants of the functions in a module, in the order of its text."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    data = source.encode()

    def change(node: ast.expr, new: str, function: int) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
        return Mutant(file, node.lineno, function, start, end, data[start:end].decode(), new)

    def visit(node: ast.AST, function: int) -> Iterator[Mutant]:
        for child in _evaluated(node):
            new = _changed(child) if function else ""
            if new and isinstance(child, ast.expr):
                yield change(child, new, function)
            yield from visit(child, _first_line(child) or function)

    yield from visit(ast.parse(source), 0)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node, but for annotations, and texts with values in them, whose places are not known."""
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.pattern):
                    yield child


def _first_line(node: ast.AST) -> int:
    """Return the line from which Python counts a function, that of its first decorator; 0 for what is none."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _changed(node: ast.AST) -> str:
    """Return the text that stands for an expression in a mutant, "" if it has none."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return f"{ast.unparse(node.left)} {SWAPPED[type(node.ops[0])]} {ast.unparse(node.comparators[0])}"
    if isinstance(node, ast.BoolOp):
        return f" {SWAPPED[type(node.op)]} ".join(f"({ast.unparse(value)})" for value in node.values)
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not isinstance(node.left, ast.Constant):
        return f"({ast.unparse(node.left)}) {SWAPPED[type(node.op)]} ({ast.unparse(node.right)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"bool({ast.unparse(node.operand)})"
    if isinstance(node, ast.IfExp):
        return f"({ast.unparse(node.orelse)}) if {ast.unparse(node.test)} else ({ast.unparse(node.body)})"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return str(node.value + 1)
    return ""


class Tree:
    """A copy of the project, in which the tests are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tree"
        self._added = folder / "added"
        unwanted = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "reports")
        shutil.copytree(ROOT, self.folder, ignore=unwanted, symlinks=True)
        self._added.mkdir()

    def run(self, *arguments: str, timeout: float | None = None) -> int | None:
        """Run pytest; return its exit code, None if it took too long."""
        path = os.pathsep.join(map(str, [self._added, self.folder]))
        hidden = ("PYTEST_", "LMEVAL_", "PYTHONDONTWRITEBYTECODE")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**inherited, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None

    def reach(self) -> dict[str, list[str]]:
        """Run all tests once; return those that enter a function, by its file and first line."""
        found = self._added / "found"
        found.mkdir()
        inside = f"{self.folder / PACKAGE}{os.sep}"
        (self._added / "sitecustomize.py").write_text(REACHES.format(inside=inside, found=str(found)))
        (self._added / "reached.py").write_text(PLUGIN)
        # The server of forks starts without PYTHONPATH, so it would not note anything.
        server = self.folder / "tests" / "fork_server.py"
        server.write_text(server.read_text().replace('if name != "PYTHONPATH"}', "}"))
        self.run("-n", "4", "-p", "reached", "--ignore=tests/reference", "--ignore=tests/adapters/hf")
        reached: dict[str, dict[str, None]] = defaultdict(dict)
        for path in found.iterdir():
            for text in path.read_text().splitlines():
                # A test may kill a process while it writes.
                with contextlib.suppress(ValueError):
                    test, places = json.loads(text)
                    for file, line in places:
                        reached[f"{file}:{line}"][test] = None
        for name in ("sitecustomize.py", "reached.py"):
            (self._added / name).unlink()
        return {place: sorted(tests) for place, tests in reached.items()}

    def survives(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Tell whether no test fails with the mutant in the package: a few tests are run first, then many at a time."""
        path = self.folder / PACKAGE / mutant.file
        before = path.read_bytes()
        self._write(path, before[: mutant.start] + f"({mutant.new})".encode() + before[mutant.end :])
        try:
            starts = [0, 8, *range(40, len(tests), 200)]
            return all(
                self.run("-x", "-n", "2", *tests[first:end], timeout=300) in (0, 5)
                for first, end in pairwise([*(start for start in starts if start < len(tests)), len(tests)])
            )
        finally:
            self._write(path, before)

    def _write(self, path: Path, content: bytes) -> None:
        # Compiled modules are told from others by size and second.
        later = path.stat().st_mtime + 2
        path.write_bytes(content)
        os.utime(path, (later, later))


def main() -> None:
    """Draw the mutants, run their tests and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants of files with this text in their path alone")
    parser.add_argument(
        "--reach", type=Path, help="file with the tests that enter each function; made if it is missing"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        reach = _reach(tree, options.reach)
        drawn = draw(options.seed, options.count, options.only)
        rows = []
        for number, mutant in enumerate(drawn, 1):
            began = time.monotonic()
            reaching = _nearest_first(mutant, reach.get(f"{mutant.file}:{mutant.function}", []))
            survives = tree.survives(mutant, reaching)
            took = f"{time.monotonic() - began:.0f} s"
            rows.append((str(mutant), "survives" if survives else "killed", len(reaching), took))
            print(f"{number}/{len(drawn)}", *rows[-1], file=sys.stderr, flush=True)
    killed = sum(row[1] == "killed" for row in rows)
    print("| survivor | tests that reach it |\n| --- | --- |")
    for name, outcome, tests, _ in rows:
        if outcome == "survives":
            print(f"| `{name}` | {tests} |")
    print(f"\nseed {options.seed}: {killed} of {len(rows)} mutants killed")


def draw(seed: int, count: int, only: str = "") -> list[Mutant]:
    """Return mutants drawn from all of the package, each place as likely as another."""
    files = sorted(path.relative_to(ROOT / PACKAGE) for path in (ROOT / PACKAGE).rglob("*.py"))
    wanted = [file for file in files if only in file.as_posix() and not {*file.parts} & {*LEFT_OUT}]
    found = [
        mutant for file in wanted for mutant in mutants(file.as_posix(), (ROOT / PACKAGE / file).read_text("utf-8"))
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def _reach(tree: Tree, kept: Path | None) -> Mapping[str, list[str]]:
    if kept is not None and kept.exists():
        known: dict[str, list[str]] = json.loads(kept.read_text())
        return known
    reach = tree.reach()
    if kept is not None:
        kept.write_text(json.dumps(reach))
    return reach


def _nearest_first(mutant: Mutant, tests: Sequence[str]) -> list[str]:
    """Return tests in the order in which they are likely to fail: those of the same folder, then the quick ones."""
    folder = mutant.file.partition("/")[0].removesuffix(".py")
    return sorted(tests, key=lambda test: (folder not in test, "/plugin/" in test, test))


if __name__ == "__main__":
    main()
