"""Measures log-likelihood requests per second beside lm-evaluation-harness, on the same requests and the same model.

Usage: ``python benchmarks/loglikelihood.py [--quick] [--data DIR] [--peers DIR] [--threads N]``. The model is a small
Llama, trained for a minute on the texts of the data: CORE files, looked for in DIR. With ``--peers`` lm-eval is
installed into an environment of its own below that folder, which sees the packages of this one besides: torch and
transformers have to be the same. Both sides get all requests of a task at once, in a process of their own; loading is
not counted. The accuracies are by the highest log-probability, by the highest per character, and by every token being
the likeliest; they count as equal where every single request is greedy on both sides or on neither.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loglikelihood_model import build_model

from pytest_lmeval.formats.core import CoreTask, load_core
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.metrics.parts.probability import accuracy_by, per_character
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import LogLikelihood

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "shared" / "data" / "core"
PEER = "lm_eval[hf]"
ROUNDS = 3
ENTRIES = (
    ("copa", "copa.jsonl", 0, "multiple_choice", 50),
    ("openbook_qa", "openbook_qa.jsonl", 0, "multiple_choice", 25),
    ("arc_easy", "arc_easy.jsonl", 10, "multiple_choice", 25),
    ("winograd_wsc", "winograd_wsc.jsonl", 0, "schema", 50),
    ("lambada", "lambada_openai_small.jsonl", 0, "language_modeling", 0),
    ("jeopardy", "jeopardy_small.jsonl", 10, "language_modeling", 0),
    ("operators", "bigbench_operators.jsonl", 10, "language_modeling", 0),
)
MOST = 300


@dataclass(frozen=True)
class Side:
    """What one side made of a task's requests: totals and greedy flags in their order, and its seconds."""

    totals: list[float]
    greedy: list[bool]
    seconds: float


def main() -> None:
    """Print a row per task: requests per second of both sides, the largest difference, accuracies."""
    parser = argparse.ArgumentParser(description="Measure log-likelihoods beside lm-evaluation-harness.")
    parser.add_argument("--quick", action="store_true", help="a few examples, once: shows that it runs, not how fast")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="where the CORE files are")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure lm-eval, installed below DIR")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lmeval-loglikelihood-") as folder:
        scene = Path(folder)
        tasks = load_tasks(options.data, scene)
        model = build_model(scene / "model", texts(options.data), steps=20 if options.quick else 200)
        print("| task | requests | pytest-lmeval, 1/s | lm-eval, 1/s | ratio | difference | accuracies |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
        for task in tasks:
            measure(task, 4 if options.quick else MOST, model, options)


def measure(task: CoreTask, most: int, model: Path, options: argparse.Namespace) -> None:
    """Ask both sides for one task and print the row."""
    examples = task.examples[:most]
    asked = [list(task.requests(example, example.prompt)) for example in examples]
    requests = [one for part in asked for one in part if isinstance(one, LogLikelihood)]
    rounds = 1 if options.quick else ROUNDS
    own = run_side(sys.executable, "ours", model, requests, rounds, options.threads)
    cells = [task.name, str(len(requests)), f"{len(requests) / own.seconds:.0f}"]
    mine = accuracies(task, examples, asked, own)
    if options.peers is None:
        print(f"| {' | '.join([*cells, '', '', '', mine])} |", flush=True)
        return
    peer = run_side(environment(options.peers), "lm_eval", model, requests, rounds, options.threads)
    apart = max(abs(one - other) for one, other in zip(own.totals, peer.totals, strict=True))
    theirs = accuracies(task, examples, asked, peer)
    same = mine == theirs and own.greedy == peer.greedy
    verdict = f"{mine}, equal" if same else f"{mine} against {theirs}"
    cells += [f"{len(requests) / peer.seconds:.0f}", f"{peer.seconds / own.seconds:.2f}", f"{apart:.1e}", verdict]
    print(f"| {' | '.join(cells)} |", flush=True)


def accuracies(task: CoreTask, examples: Sequence[Any], asked: Sequence[Sequence[Any]], side: Side) -> str:
    """Return the accuracies of a task by one side's numbers."""
    if task.kind == "language_modeling":
        return f"greedy {sum(side.greedy) / len(examples):.4f}"
    by_total, by_length, begin = 0.0, 0.0, 0
    for example, part in zip(examples, asked, strict=True):
        totals = side.totals[begin : begin + len(part)]
        begin += len(part)
        texts = list(dict.fromkeys(example.metadata["choices"]))
        gold = texts.index(example.targets[0])
        by_total += accuracy_by(totals, gold)
        by_length += accuracy_by(per_character(totals, texts), gold)
    return f"total {by_total / len(examples):.4f}, per character {by_length / len(examples):.4f}"


def run_side(
    python: object, name: str, model: Path, requests: Sequence[LogLikelihood], rounds: int, threads: int
) -> Side:
    """Return what a process of the side called ``name`` makes of ``requests``, and its median seconds."""
    pairs, answers = model.parent / "requests.json", model.parent / "answers.json"
    pairs.write_text(json.dumps([[one.context, one.continuation] for one in requests]), encoding="utf-8")
    run([python, HERE / "loglikelihood_side.py", name, model, pairs, answers, rounds], threads)
    return Side(**json.loads(answers.read_text(encoding="utf-8")))


def load_tasks(data: Path, scene: Path) -> Sequence[CoreTask]:
    """Return the CORE tasks of ``data``."""
    lines = ["Eval Task,Random baseline", *(f"{label},{baseline}" for label, *_, baseline in ENTRIES)]
    (scene / "eval_meta_data.csv").write_text("\n".join(lines), encoding="utf-8")
    entries = [
        {"label": label, "dataset_uri": str(data / file), "num_fewshot": shots, "icl_task_type": kind}
        for label, file, shots, kind, _ in ENTRIES
    ]
    loaded = load_core(TaskSource(scene / "core.yaml", b"", "core"), {"icl_tasks": entries}, Registry())
    if loaded.errors:
        raise SystemExit("\n".join(error.at("core.yaml") for error in loaded.errors))
    return [task for task in loaded.tasks if isinstance(task, CoreTask)]


def texts(data: Path) -> list[str]:
    """Return every right text of the data."""
    found = []
    for _, file, *_ in ENTRIES:
        for line in (data / file).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            context = record.get("query") or record.get("context") or record["context_options"][record["gold"]]
            found.append(f"{context} {record.get('continuation') or record['choices'][record['gold']]}")
    return found


def environment(folder: Path) -> Path:
    """Return the Python of the environment that has lm-eval, made where it is not there yet."""
    place = folder / "lm_eval_hf"
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        run([sys.executable, "-m", "venv", place])
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        shared = place / "lib" / version / "site-packages" / "shared.pth"
        shared.write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
        run([python, "-m", "pip", "install", "--quiet", PEER])
        (place / "ready").touch()
    return python


def run(command: Sequence[object], threads: int = 1) -> None:
    """Run a command; where it fails, show its words."""
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true", "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [str(part) for part in command], env={**os.environ, **quiet}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[:4]} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    main()
