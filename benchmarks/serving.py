"""Measures how close runs come to the time that a slow server dictates, beside a bare client and other harnesses.

Usage: ``python benchmarks/serving.py [--quick] [--runs N] [--load N]... [--peers DIR]``. With ``--peers`` lm-eval and
inspect_ai are installed into environments of their own below DIR and measured on the same server, once, on the loads of
1,000 requests; the first time this takes minutes. ``--load`` chooses loads by their place, counted from 0.
Start-up, the time of a run of one example, is taken off, but for the bare client, which times itself. CPU is that of
all processes but the server's. "@parametrize, asks nothing" is pytest alone, with as many empty tests as there are
requests: what it takes for so many items, whatever they ask. It is measured on the largest loads.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import OURS, strangers

HERE = Path(__file__).parent
RUNS = 3
_LOAD_OF_PEERS = 1000
_LOAD_OF_PYTEST = 10000


@dataclass(frozen=True)
class Load:
    """A server's latency and how it is asked."""

    requests: int
    in_flight: int
    seconds: float
    kind: str = "fixed"

    @property
    def ideal(self) -> float:
        """The wall time that nobody can beat, on average."""
        return self.requests / self.in_flight * self.seconds


FULL = [
    Load(1000, 32, 0.05),
    Load(1000, 256, 0.05),
    Load(4000, 256, 0.5),
    Load(10000, 256, 0.05),
    Load(1000, 32, 0.05, "tailed"),
]
QUICK = [Load(64, 16, 0.02)]


def main() -> None:
    """Print a row per load and client: wall seconds, share of the ideal, and of the bare client, CPU per request."""
    parser = argparse.ArgumentParser(description="Measure requests in flight beneath pytest items.")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that it runs, not how fast")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often each client is run (default {RUNS})")
    parser.add_argument("--load", type=int, action="append", metavar="N", help="of the loads these")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure lm-eval and inspect_ai, installed below DIR")
    options = parser.parse_args()
    print("| requests | in flight | latency | client | wall s | of ideal | of bare | CPU us per request |")
    print("| ---: | ---: | --- | --- | ---: | ---: | ---: | ---: |")
    loads = QUICK if options.quick else [FULL[place] for place in options.load or range(len(FULL))]
    for load in loads:
        measure(load, 1 if options.quick else options.runs, options.peers)


def measure(load: Load, runs: int, peers: Path | None) -> None:
    """Measure every client on one load, in turns, and print the medians."""
    found: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="lmeval-serving-") as folder, serving(load) as port:
        scene = Path(folder)
        write_tasks(scene, load.requests)
        for _ in range(runs):
            found.setdefault("bare aiohttp", []).append(bare(load, port))
            found.setdefault("records", []).append(ours(load, port, scene, "t.jsonl"))
            found.setdefault("functions", []).append(ours(load, port, scene, "test_words.py"))
            if load.requests >= _LOAD_OF_PYTEST or load in QUICK:
                found.setdefault("@parametrize, asks nothing", []).append(pytest_alone(scene))
        if peers is not None and load.requests <= _LOAD_OF_PEERS:
            for name, peer in PEERS.items():
                found[name] = [peer(load, port, scene, peers)]
    medians = {
        client: Cost(*(statistics.median(getattr(cost, name) for cost in costs) for name in ("wall", "cpu")))
        for client, costs in found.items()
    }
    for client, cost in medians.items():
        shares = f"{load.ideal / cost.wall:.2f} | {medians['bare aiohttp'].wall / cost.wall:.2f}"
        latency = f"{load.seconds * 1000:g} ms {load.kind}"
        cpu = f"{cost.cpu / load.requests * 1e6:,.0f}"
        row = f"| {load.requests} | {load.in_flight} | {latency} | {client} | {cost.wall:.2f} | {shares} | {cpu} |"
        print(row, flush=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU in seconds, start-up taken off."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


def bare(load: Load, port: int) -> Cost:
    """Return what a bare client takes, by its own clocks."""
    done = run([sys.executable, HERE / "bare_client.py", port, load.requests, load.in_flight])
    wall, cpu = map(float, done.split())
    return Cost(wall, cpu)


def ours(load: Load, port: int, scene: Path, file: str) -> Cost:
    """Return what the items of a pytest run take, of records or of an eval function, by the name of their file."""

    def once(tasks: str) -> Cost:
        options: list[object] = ["--lm-adapter=openai:m", "--lm-adapter-arg", f"base_url=http://127.0.0.1:{port}/v1"]
        options += ["--lm-concurrency", load.in_flight]
        return timed([*PYTEST, f"{tasks}/{file}", *options, *blocked(*strangers())], scene)

    return once("all") - once("one")


def pytest_alone(scene: Path) -> Cost:
    """Return what pytest takes for items that ask nothing, without the plugin."""

    def once(tasks: str) -> Cost:
        return timed([*PYTEST, f"{tasks}/test_nothing.py", *blocked(*strangers(), *OURS)], scene)

    return once("all") - once("one")


PYTEST = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider"]


def blocked(*plugins: str) -> list[str]:
    """Return the options that keep plugins out."""
    return [f"-pno:{name}" for name in plugins]


def inspect_ai(load: Load, port: int, scene: Path, peers: Path) -> Cost:
    """Return what inspect_ai takes."""
    python = environment(peers, "inspect_ai", "openai")
    (scene / "peer.py").write_text(_INSPECT_TASK, encoding="utf-8")
    command = [python, "-m", "inspect_ai._cli.main", "eval", "peer.py", "--model", "openai/m", "--display", "none"]
    command += ["--max-connections", load.in_flight, "--max-samples", load.in_flight, "--log-dir", "logs"]
    url = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "none"}
    whole = timed([*command, "-T", "path=all/t.jsonl"], scene, url)
    return whole - timed([*command, "-T", "path=one/t.jsonl"], scene, url)


def lm_eval(load: Load, port: int, scene: Path, peers: Path) -> Cost:
    """Return what lm-eval takes."""
    python = environment(peers, "lm_eval[api]")
    arguments = f"model=m,base_url=http://127.0.0.1:{port}/v1/chat/completions,num_concurrent={load.in_flight}"

    def once(name: str) -> Cost:
        (scene / f"peer_{name}.yaml").write_text(_LM_EVAL_TASK.format(name=name, scene=scene), encoding="utf-8")
        command = [python, "-m", "lm_eval", "--model", "local-chat-completions", "--model_args", arguments]
        command += ["--tasks", f"peer_{name}", "--include_path", scene, "--apply_chat_template"]
        return timed(command, scene, {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none"})

    return once("all") - once("one")


PEERS = {"lm-eval": lm_eval, "inspect_ai": inspect_ai}

_FUNCTION = """
from pytest_lmeval import eval_task

@eval_task("words", data=[{{"id": f"e{{number}}", "prompt": f"say {{number}}"}} for number in range({count})])
async def test_words(row, lm):
    assert (await lm.ask(row["prompt"])).text == "yes"
"""
_NOTHING = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_nothing(number):
    pass
"""
_INSPECT_TASK = """
import json
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate

@task
def peer(path):
    rows = [json.loads(line) for line in open(path)]
    return Task([Sample(input=row["prompt"], target=row["targets"][0]) for row in rows], [generate()], exact())
"""

_LM_EVAL_TASK = """
task: peer_{name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{scene}/{name}/t.jsonl"}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{targets[0]}}}}"
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: 16}}
metric_list: [{{metric: exact_match}}]
"""


def environment(folder: Path, *packages: str) -> Path:
    """Return the Python of an environment that has ``packages``, made where it is not there yet."""
    place = folder / packages[0].partition("[")[0]
    python = place / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", place])
        run([python, "-m", "pip", "install", "--quiet", *packages])
    return python


def write_tasks(scene: Path, requests: int) -> None:
    """Write a task of ``requests`` examples and one of a single example."""
    for name, count in (("all", requests), ("one", 1)):
        (scene / name).mkdir()
        lines = [
            json.dumps({"id": f"e{number}", "prompt": f"say {number}", "targets": ["yes"], "metric": "exact_match"})
            for number in range(count)
        ]
        (scene / name / "t.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (scene / name / "test_words.py").write_text(_FUNCTION.format(count=count), encoding="utf-8")
        (scene / name / "test_nothing.py").write_text(_NOTHING.format(count=count), encoding="utf-8")


@contextlib.contextmanager
def serving(load: Load) -> Iterator[int]:
    """Run the server of a load and yield its port."""
    command = [sys.executable, HERE / "slow_server.py", load.kind, str(load.seconds)]
    server = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.communicate()


def timed(command: Sequence[object], folder: Path, variables: dict[str, str] | None = None) -> Cost:
    """Return what a command takes, with the processes that it waits for."""
    started, before = time.perf_counter(), _cpu_of_children()
    run(command, folder, variables)
    return Cost(time.perf_counter() - started, _cpu_of_children() - before)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command: Sequence[object], folder: Path | None = None, variables: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints; where it fails, show its words."""
    # As where a package is installed: with bytecode, or each start compiles what it imports.
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**here, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command[:4]} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
