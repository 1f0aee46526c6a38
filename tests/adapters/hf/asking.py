"""Ways to ask a model in a test, and to do by hand what it does."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, Message

__all__ = ["completion", "greedy_by_hand", "one", "read_by", "split", "texts"]


def texts(answers: list[Completion | AdapterError]) -> list[str]:
    return [completion(answer).text for answer in answers]


def completion(answer: Completion | AdapterError) -> Completion:
    assert isinstance(answer, Completion), answer
    return answer


def one(model: HfAdapter, prompt: str | tuple[Message, ...], **fields: Any) -> Completion:
    return completion(model.generate_requests([Generate(prompt, **fields)])[0])


def read_by(model: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return a list that fills with the rows and tokens of each pass through the model, from the first on."""
    # Tests share the models and run in any order: what an earlier one had read is not read again.
    model._reader.forget()
    sizes: list[tuple[int, int]] = []
    plain = model._open().model.forward

    def forward(input_ids: Any, attention_mask: Any, **given: Any) -> Any:
        sizes.append(tuple(input_ids.shape))
        return plain(input_ids=input_ids, attention_mask=attention_mask, **given)

    monkeypatch.setattr(model._open().model, "forward", forward)
    return sizes


def split(model: HfAdapter, context: str, continuation: str) -> tuple[list[int], int]:
    """Return the tokens of both texts, and the number of the continuation's."""
    (found,) = model._prompts.split_requests([LogLikelihood(context, continuation)])
    assert not isinstance(found, AdapterError), found
    return found


def greedy_by_hand(model: HfAdapter, tokens: list[int], count: int) -> list[int]:
    """Return the ``count`` most probable tokens, or fewer if a text ends: no batch, no padding, no cache."""
    import torch

    loaded = model._open()
    written: list[int] = []
    with torch.inference_mode():
        while len(written) < count and not set(written) & set(loaded.ends):
            logits = loaded.model(input_ids=torch.tensor([tokens + written]), use_cache=False).logits[0, -1]
            written.append(int(logits.argmax()))
    return written
