"""Measures how fast local models write, beside lm-evaluation-harness and a bare loop, on the same prompts.

Usage: ``python benchmarks/generation.py [--quick] [--peers DIR] [--threads N] [--batch-size N] [--model NAME]``. The
models are small ones of the shapes of Llama, GPT-2 and Qwen, made from configs with random weights that do not change.
Hardly a text ends before its limit. The bare loop sorts the prompts by length and calls
the library's ``generate`` with ``--batch-size`` of them; lm-eval's HFLM has the same batch size. Ours is asked as a run
asks it: through the engine, example by example. With ``--peers`` lm-eval is installed into an environment of its own
below that folder, which sees the packages of this one besides: torch and transformers are the same.

Every side is a process that loads the model once; they are asked in turns, round after round, and the median of the
seconds of processor time counts, which other work on the machine disturbs least. Texts are compared with those of the
bare loop, one prompt at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from generation_model import SHAPES, build_model, prompts
from loglikelihood import environment
from machine import describe_machine

HERE = Path(__file__).parent
NEW_TOKENS = 32
PROMPTS = 192
ROUNDS = 3


def main() -> None:
    """Print a row per model and kind of prompts."""
    parser = argparse.ArgumentParser(description="Measure how fast local models write.")
    parser.add_argument("--quick", action="store_true", help="a few prompts, once: shows that it runs, not how fast")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="measure lm-eval, installed below DIR")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--batch-size", type=int, default=16, metavar="N", help="of the bare loop and lm-eval")
    parser.add_argument("--model", action="append", choices=sorted(SHAPES), help="measure this shape alone")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    options = parser.parse_args()
    print(describe_machine())
    print("| model | prompts | tokens | tokens per CPU second | bare loop | lm-eval | of bare | of lm-eval | equal |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="lmeval-generation-") as folder:
        for name in options.model or SHAPES:
            model = build_model(Path(folder) / name, name)
            for kind, texts in prompts(12 if options.quick else PROMPTS).items():
                measure(name, kind, model, texts, options)


def measure(name: str, kind: str, model: Path, texts: Sequence[str], options: argparse.Namespace) -> None:
    """Ask every side in turns and print the row."""
    pythons: dict[str, object] = {"ours": sys.executable, "bare": sys.executable}
    if options.peers is not None:
        pythons["lm_eval"] = environment(options.peers)
    seconds: dict[str, list[float]] = {side: [] for side in pythons}
    written: dict[str, list[str]] = {}
    with ExitStack() as stack:
        sides = {side: stack.enter_context(open_side(side, python, model, options)) for side, python in pythons.items()}
        for number in range(-1, 1 if options.quick else options.rounds):
            for side, ask in sides.items():
                answer = ask(texts if number >= 0 else texts[:4])
                if number >= 0:
                    seconds[side].append(answer["seconds"])
                    written[side] = answer["texts"]
    tokens = len(texts) * NEW_TOKENS
    took = {side: statistics.median(each) for side, each in seconds.items()}
    speeds = [f"{tokens / took[side]:.0f}" if side in took else "" for side in ("ours", "bare", "lm_eval")]
    ratios = [ratio(took, seconds, side) if side in took else "" for side in ("bare", "lm_eval")]
    equal = sum(one == other for one, other in zip(written["ours"], written["bare"], strict=True))
    cells = [name, kind, str(tokens), *speeds, *ratios, f"{equal} of {len(texts)}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def ratio(took: dict[str, float], seconds: dict[str, list[float]], side: str) -> str:
    """Return how many times as fast ours is as a side, with the least and the most of the rounds."""
    each = [other / own for own, other in zip(seconds["ours"], seconds[side], strict=True)]
    return f"{took[side] / took['ours']:.2f} [{min(each):.2f}-{max(each):.2f}]"


@contextmanager
def open_side(side: str, python: object, model: Path, options: argparse.Namespace) -> Iterator[Any]:
    """Start the process of a side, and provide the function that asks it."""
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": str(options.threads)}
    command = [python, HERE / "generation_side.py", side, model, NEW_TOKENS, options.batch_size]
    with subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **quiet},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if side == "lm_eval" else None,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(texts: Sequence[str]) -> Any:
            stdin.write(json.dumps(list(texts)) + "\n")
            stdin.flush()
            line = stdout.readline()
            if not line:
                raise SystemExit(f"the side {side} has ended")
            return json.loads(line)

        yield ask
        stdin.close()


if __name__ == "__main__":
    main()
