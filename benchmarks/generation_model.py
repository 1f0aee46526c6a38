"""Small models of the shapes of known ones, and prompts for them, of different lengths and with worked examples."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["SHAPES", "build_model", "prompts"]

_VOCABULARY = 8000
_WINDOW = 2048
_LLAMA: Mapping[str, Any] = {
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": _WINDOW,
}
SHAPES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "Llama": ("LlamaConfig", "LlamaForCausalLM", _LLAMA),
    "GPT-2": ("GPT2Config", "GPT2LMHeadModel", {"n_embd": 256, "n_layer": 6, "n_head": 8, "n_positions": _WINDOW}),
    "Qwen": ("Qwen2Config", "Qwen2ForCausalLM", {**_LLAMA, "num_key_value_heads": 2}),
}
_SYLLABLES = [first + last for first in "bdfgklmnprst" for last in ("a", "e", "i", "o", "u", "an", "er", "is")]
_SHOTS = 5


def build_model(folder: Path, name: str) -> Path:
    """Save tokenizer and model of a shape, and return ``folder``."""
    import torch
    import transformers
    from loglikelihood_model import make_tokenizer

    luck = random.Random(0)
    tokenizer = make_tokenizer([_text(luck, 60) for _ in range(200)])
    config, model, sizes = SHAPES[name]
    ends = {"bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(vocab_size=_VOCABULARY, **ends, **sizes))
    made.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def prompts(number: int) -> dict[str, list[str]]:
    """Return prompts of 4 to 80 words, and questions of 10 to 50 words after five worked examples that all share."""
    luck = random.Random(1)
    plain = [_text(luck, luck.randint(4, 80)) for _ in range(number)]
    shots = [f"Question: {_text(luck, 40)}\nAnswer: {_text(luck, 10)}\n\n" for _ in range(_SHOTS)]
    asked = [f"Question: {_text(luck, luck.randint(10, 50))}\nAnswer:" for _ in range(number)]
    return {"plain": plain, "five-shot": ["".join(shots) + question for question in asked]}


def _text(luck: random.Random, words: int) -> str:
    return " ".join("".join(luck.choices(_SYLLABLES, k=luck.randint(1, 3))) for _ in range(words))
