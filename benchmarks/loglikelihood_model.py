"""A small Llama with a byte-level tokenizer, trained for a minute: enough that it prefers some texts to others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["build_model", "make_tokenizer"]

_END = "</s>"


def build_model(folder: Path, texts: Sequence[str], steps: int) -> Path:
    """Save tokenizer and model, trained for ``steps`` on batches of ``texts``, and return ``folder``."""
    import torch
    import transformers

    tokenizer = make_tokenizer(texts)
    sizes: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 1024}
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes, **heads)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    luck = random.Random(0)
    for _ in range(steps):
        rows = [torch.tensor(tokenizer(text)["input_ids"][:64]) for text in luck.sample(texts, 16)]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        labels = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
        logits = model(input_ids=tokens).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_tokenizer(texts: Sequence[str]) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=8000, special_tokens=[_END], initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, bos_token=_END, eos_token=_END, pad_token=_END)
