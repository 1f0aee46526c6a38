"""How probable the model finds a given text."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_lmeval.adapters.hf.batches import pad_left
from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogProb

__all__ = ["Reading", "readings", "score", "together"]

_LOGITS_PER_TOKEN = 16384
"""So many logits are taken to need as much memory as one token that is read."""


@dataclass(slots=True)
class Reading:
    """One row for the model: what it reads, and by request number the tokens whose probability is asked for.

    The i-th last of a continuation's tokens is predicted at the i-th last token that is read.
    """

    tokens: list[int]
    asked: dict[int, list[int]] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """How many predictions, at the end of the row, are asked for."""
        return max(map(len, self.asked.values()))


def readings(split: Mapping[int, tuple[list[int], int]], window: int | None) -> list[Reading]:
    """Return the rows that answer every request; ``split`` has the tokens and the continuation's number of them.

    A row is cropped on its left to the ``window``. Requests for which the model reads the same, as those for one
    token after the same context, share a row.
    """
    rows: dict[tuple[int, ...], Reading] = {}
    for number, (tokens, size) in split.items():
        read = tokens[:-1] if window is None else tokens[:-1][-window:]
        rows.setdefault(tuple(read), Reading(read)).asked[number] = tokens[-size:]
    return list(rows.values())


def together(batch: Sequence[Reading], batch_tokens: int, vocabulary: int) -> bool:
    """Tell whether the rows can be one batch of at most ``batch_tokens``."""
    read = len(batch) * max(len(row.tokens) for row in batch)
    logits = len(batch) * max(row.kept for row in batch) * vocabulary
    return read <= batch_tokens and logits <= batch_tokens * _LOGITS_PER_TOKEN


def score(loaded: Loaded, batch: Sequence[Reading]) -> list[dict[int, LogProb | AdapterError]]:
    """Return for each row the log-probabilities that it asks for, by request number.

    One that is not a finite number, as of a model that overflows its dtype, is an AdapterError.
    """
    tokens, mask = pad_left([row.tokens for row in batch], loaded.pad, loaded.device)
    logits = _logits(loaded.model, tokens, mask, max(row.kept for row in batch))
    return [_answers(row, predicted) for row, predicted in zip(batch, logits, strict=True)]


def _answers(row: Reading, predicted: Any) -> dict[int, LogProb | AdapterError]:
    logprobs = predicted[-row.kept :].float().log_softmax(-1)
    return {number: _logprob(logprobs, asked) for number, asked in row.asked.items()}


def _logits(model: Any, tokens: Any, mask: Any, wanted: int) -> Any:
    """Return the predictions of the last ``wanted`` positions, at least, of shape (rows, positions, vocabulary)."""
    knows = inspect.signature(model.forward).parameters
    extra: dict[str, Any] = {}
    if "position_ids" in knows:
        extra["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)
    if "logits_to_keep" in knows:
        extra["logits_to_keep"] = wanted
    return model(input_ids=tokens, attention_mask=mask, use_cache=False, **extra).logits


def _logprob(logprobs: Any, asked: list[int]) -> LogProb | AdapterError:
    import torch

    own = logprobs[-len(asked) :]
    targets = torch.tensor(asked, device=own.device)
    each = own.gather(-1, targets[:, None]).squeeze(-1).tolist()
    total = sum(each)
    if not math.isfinite(total):
        return AdapterError(f"the continuation's log-probability is {total}; a dtype of more range may help: float32")
    return LogProb(total, tuple(each), greedy=bool((own.argmax(-1) == targets).all()))
