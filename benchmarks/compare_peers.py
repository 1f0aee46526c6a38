"""Measures other harnesses beside this one: what an example costs, and how well waits for a server overlap.

Usage: ``python benchmarks/compare_peers.py ENVIRONMENTS [--quick] [--turns N] [--only NAME]...``. ENVIRONMENTS is a
folder with an environment for each peer, called as its script; one that is missing is made. What each peer runs is
``peers/with_NAME.py``: the same prompts, 32 at once, exact match.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine import describe_machine
from serving import Load, serving

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A script of ``peers/``, the packages of its environment (without any it runs in ours), its last argument."""

    name: str
    script: str
    packages: tuple[str, ...] = ()
    kind: str = ""


PEERS = [
    Peer("bare loop", "nothing"),
    Peer("@parametrize", "pytest_lmeval", kind="plain"),
    Peer("pytest-lmeval, records", "pytest_lmeval", kind="records"),
    Peer("pytest-lmeval, functions", "pytest_lmeval", kind="functions"),
    Peer("pydantic-evals", "pydantic_evals", ("pydantic-evals", "aiohttp")),
    Peer("pytest-evals", "pytest_evals", ("pytest-evals", "aiohttp")),
    Peer("deepeval", "deepeval", ("deepeval", "aiohttp")),
    Peer("inspect_ai", "inspect_ai", ("inspect_ai", "openai")),
    Peer("lm_eval", "lm_eval", ("lm_eval[api,hf]==0.4.13",)),
]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall in seconds."""

    cpu: float
    wall: float


def main() -> None:
    """Print a row for each harness."""
    parser = argparse.ArgumentParser(description="Measure other harnesses beside this one.")
    parser.add_argument("environments", type=Path, metavar="ENVIRONMENTS", help="folder of the peers' environments")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    parser.add_argument("--turns", type=int, default=3, help="how often each is run; the least counts (default 3)")
    parser.add_argument("--only", action="append", metavar="NAME", help="of the peers these")
    options = parser.parse_args()
    chosen = [peer for peer in PEERS if peer.name == "bare loop" or not options.only or peer.name in options.only]
    instant, requests, turns = (40, 40, 1) if options.quick else (1000, 640, options.turns)
    pythons = {peer.name: environment(options.environments, peer) for peer in chosen}
    print(f"{describe_machine()}\n{'; '.join(versions(pythons, chosen))}\n")
    found: dict[tuple[str, str], list[Cost]] = {}
    with serving(Load(requests, 32, 0.05)) as port:
        # In turns, so that a slow minute of the machine meets all alike.
        for turn in range(turns):
            for peer in chosen:
                for load, count, where in loads(instant, requests, port):
                    cost = run(pythons[peer.name], peer, count, where)
                    found.setdefault((peer.name, load), []).append(cost)
                    print(f"{turn} {peer.name}, {load}: {cost.cpu:.2f} s CPU, {cost.wall:.2f} s", file=sys.stderr)
    print_table(found, chosen, instant, requests)


def loads(instant: int, requests: int, port: int) -> list[tuple[str, int, int]]:
    """Return the runs of each peer: its name, the examples, the port."""
    return [("one", 1, 0), ("many", instant, 0), ("one asked", 1, port), ("many asked", requests, port)]


def print_table(found: dict[tuple[str, str], list[Cost]], peers: list[Peer], instant: int, requests: int) -> None:
    """Print the least CPU time and wall of each load; the wall of the server with start-up taken off."""

    def least(name: str, load: str) -> Cost:
        costs = found[name, load]
        return Cost(min(cost.cpu for cost in costs), min(cost.wall for cost in costs))

    def asked(name: str) -> float:
        return least(name, "many asked").wall - least(name, "one asked").wall

    print("| harness | start, CPU s | CPU us per example | of @parametrize | CPU us per request | wall s | of bare |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    each = {
        peer.name: (least(peer.name, "many").cpu - least(peer.name, "one").cpu) / (instant - 1) * 1e6 for peer in peers
    }
    for peer in peers:
        ask = (least(peer.name, "many asked").cpu - least(peer.name, "one asked").cpu) / (requests - 1) * 1e6
        plain = f"{each[peer.name] / each['@parametrize']:.2f}" if "@parametrize" in each else ""
        print(
            f"| {peer.name} | {least(peer.name, 'one').cpu:.2f} | {each[peer.name]:,.0f} | {plain} | {ask:,.0f} "
            f"| {asked(peer.name):.2f} | {asked('bare loop') / asked(peer.name):.2f} |"
        )


def run(python: str, peer: Peer, examples: int, port: int) -> Cost:
    """Return what a run of so many examples costs; SystemExit with its words where it fails."""
    script = HERE / "peers" / f"with_{peer.script}.py"
    command = [python, str(script), str(examples), str(port), *([peer.kind] if peer.kind else [])]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST_"))}
    with tempfile.TemporaryDirectory(prefix="lmeval-peer-") as folder, tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, env=kept, stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if child.returncode:
            raise SystemExit(f"{peer.name} ended with {child.returncode}:\n{output.read().decode()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


def environment(folder: Path, peer: Peer) -> str:
    """Return the Python of a peer's environment, made where it is not there yet."""
    if not peer.packages:
        return sys.executable
    python = folder / peer.script / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / peer.script], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *peer.packages], check=True)
    return str(python)


def versions(pythons: dict[str, str], peers: list[Peer]) -> list[str]:
    """Return name and version of each peer."""
    ask = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    found = []
    for peer in peers:
        if peer.packages:
            name = peer.packages[0].partition("[")[0]
            done = subprocess.run([pythons[peer.name], "-c", ask, name], capture_output=True, text=True, check=True)
            found.append(f"{name} {done.stdout.strip()}")
    return found


if __name__ == "__main__":
    main()
