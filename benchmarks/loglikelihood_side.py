"""One side of the log-likelihood benchmark, in a process and an environment of its own.

Usage: ``python loglikelihood_side.py ours|lm_eval MODEL REQUESTS ANSWERS ROUNDS``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH_SIZE = 16
Answer = list[tuple[float, bool]]


def main() -> None:
    """Ask once to warm up and then as often as there are rounds; write totals, greedy flags and median seconds."""
    side, model, requests, answers, rounds = sys.argv[1:]
    pairs = [(context, continuation) for context, continuation in json.loads(Path(requests).read_text("utf-8"))]
    ask = {"ours": ours, "lm_eval": lm_eval}[side](model)
    ask(pairs[:4])
    seconds = []
    for _ in range(int(rounds)):
        started = time.perf_counter()
        found = ask(pairs)
        seconds.append(time.perf_counter() - started)
    fields = {"totals": [total for total, _ in found], "greedy": [greedy for _, greedy in found]}
    Path(answers).write_text(json.dumps({**fields, "seconds": statistics.median(seconds)}), encoding="utf-8")


def ours(model: str) -> Callable[[list[tuple[str, str]]], Answer]:
    """Return how this package asks."""
    from pytest_lmeval.adapters.hf import HfAdapter
    from pytest_lmeval.types import LogLikelihood, LogProb

    adapter = HfAdapter(model, device="cpu", dtype="float32")

    def ask(pairs: list[tuple[str, str]]) -> Answer:
        found = adapter.loglikelihood([LogLikelihood(*pair) for pair in pairs])
        return [(one.total, one.greedy) for one in found if isinstance(one, LogProb)]

    return ask


def lm_eval(model: str) -> Callable[[list[tuple[str, str]]], Answer]:
    """Return how lm-eval asks."""
    from importlib import import_module

    instance = import_module("lm_eval.api.instance").Instance
    peer: Any = import_module("lm_eval.models.huggingface").HFLM
    harness = peer(pretrained=model, device="cpu", dtype="float32", batch_size=BATCH_SIZE)

    def ask(pairs: list[tuple[str, str]]) -> Answer:
        requests = [
            instance(request_type="loglikelihood", doc={}, arguments=pair, idx=number)
            for number, pair in enumerate(pairs)
        ]
        return [(float(total), bool(greedy)) for total, greedy in harness.loglikelihood(requests, disable_tqdm=True)]

    return ask


if __name__ == "__main__":
    main()
