"""One side of the generation benchmark, in a process and an environment of its own.

Usage: ``python generation_side.py ours|bare|lm_eval MODEL NEW_TOKENS BATCH_SIZE``. A line of its input is a JSON list
of prompts; it answers with a line of JSON: the texts, in their order, and the seconds of processor time that it took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Ask = Callable[[list[str]], list[str]]


def main() -> None:
    """Answer until the input ends."""
    side, model, new, size = sys.argv[1:]
    # Libraries print; the answers go to what was the output.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    ask = {"ours": ours, "bare": bare, "lm_eval": lm_eval}[side](model, int(new), int(size))
    for line in sys.stdin:
        prompts = json.loads(line)
        started = time.process_time()
        texts = ask(prompts)
        answers.write(json.dumps({"texts": texts, "seconds": time.process_time() - started}) + "\n")
        answers.flush()


def ours(model: str, new: int, size: int) -> Ask:
    """Return how a run of this package asks; its own batches are not of ``size``."""
    from pytest_lmeval.adapters.hf import HfAdapter
    from pytest_lmeval.asking.engine import Engine
    from pytest_lmeval.run.plan import plan_batches
    from pytest_lmeval.types import Completion, Generate

    adapter = HfAdapter(model, device="cpu", dtype="float32", max_new_tokens=new)

    def ask(prompts: list[str]) -> list[str]:
        engine = Engine(adapter)
        keys = range(len(prompts))
        coming = iter(keys)
        engine.plan(plan_batches([("file", key) for key in keys], engine.policy.batch_size), lambda: next(coming, None))
        found = [engine.respond(key, lambda key: [Generate(prompts[key])])[0] for key in keys]
        engine.close()
        return [one.text for one in found if isinstance(one, Completion)]

    return ask


def bare(model: str, new: int, size: int) -> Ask:
    """Return a loop over prompts sorted by length."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    causal = transformers.AutoModelForCausalLM.from_pretrained(model, dtype="float32").eval()

    def ask(prompts: list[str]) -> list[str]:
        texts = [""] * len(prompts)
        order = sorted(range(len(prompts)), key=lambda number: -len(prompts[number]))
        for first in range(0, len(order), size):
            part = order[first : first + size]
            rows = tokenizer([prompts[number] for number in part], return_tensors="pt", padding=True)
            with torch.inference_mode():
                out = causal.generate(**rows, max_new_tokens=new, do_sample=False, **ends)
            for number, row in zip(part, out[:, rows["input_ids"].shape[1] :], strict=True):
                texts[number] = tokenizer.decode(row, skip_special_tokens=True)
        return texts

    return ask


def lm_eval(model: str, new: int, size: int) -> Ask:
    """Return how lm-eval asks."""
    from importlib import import_module

    instance = import_module("lm_eval.api.instance").Instance
    peer: Any = import_module("lm_eval.models.huggingface").HFLM
    harness = peer(pretrained=model, device="cpu", dtype="float32", batch_size=size)
    options = {"until": ["</s>"], "max_gen_toks": new, "do_sample": False}

    def ask(prompts: list[str]) -> list[str]:
        requests = [
            instance(request_type="generate_until", doc={}, arguments=(prompt, options), idx=number)
            for number, prompt in enumerate(prompts)
        ]
        return list(harness.generate_until(requests, disable_tqdm=True))

    return ask


if __name__ == "__main__":
    main()
