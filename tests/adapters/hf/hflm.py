"""What lm-evaluation-harness's own model says, where it is installed: ``hflm.py MODEL REQUESTS ANSWERS``.

REQUESTS has ``pairs`` of a context and a continuation, ``texts`` to read whole, and ``talks``: messages and a
continuation. ANSWERS has the log-probabilities, and the tokens of each talk: as a prompt, and with its continuation.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read when the libraries are imported.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM


def instances(kind: Any, arguments: Sequence[tuple[str, ...]]) -> list[Any]:
    return [Instance(request_type=kind, doc={}, arguments=each, idx=number) for number, each in enumerate(arguments)]


def written(model: Any, messages: list[dict[str, str]]) -> str:
    text: str = model.apply_chat_template(messages, add_generation_prompt=messages[-1]["role"] != "assistant")
    return text


def main(folder: str, requests: str, answers: str) -> None:
    torch.set_num_threads(1)
    asked = json.loads(Path(requests).read_text("utf-8"))
    model = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=4)
    pairs = [tuple(each) for each in asked["pairs"]]
    talks = [(written(model, messages), text) for messages, text in asked["talks"]]
    found = model.loglikelihood(instances("loglikelihood", [*pairs, *talks]), disable_tqdm=True)
    texts = [(each,) for each in asked["texts"]]
    whole = model.loglikelihood_rolling(instances("loglikelihood_rolling", texts), disable_tqdm=True)
    said = {
        "pairs": [[float(total), bool(greedy)] for total, greedy in found[: len(pairs)]],
        "talks": [[float(total), bool(greedy)] for total, greedy in found[len(pairs) :]],
        "texts": [float(total) for total in whole],
        "prompts": [model.tok_batch_encode([text])[0][0].tolist() for text, _ in talks],
        "tokens": [model._encode_pair(*pair) for pair in [*pairs, *talks] if pair[0]],
    }
    Path(answers).write_text(json.dumps(said), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
