"""Passes through the model: rows read together, with what they begin with in common read once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.rows import AnyRow, Batch, rows_of


def can_go_on(model: Any) -> bool:
    """Tell whether ``model`` is known to go on from keys and values that were computed for other rows.

    Only models of the library itself whose layers all attend to everything: what slides, recurs or is compressed
    keeps more, or less, than a beginning.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    whole = layers == {"full_attention"} and not getattr(config, "sliding_window", None)
    knows = {name_of_past(model), "position_ids", "logits_to_keep"} <= inspect.signature(
        model.forward
    ).parameters.keys()
    ours = type(model).__module__.startswith("transformers.models.")
    return ours and whole and knows and not getattr(model, "_is_stateful", False)


def name_of_past(model: Any) -> str:
    """Return what ``model`` calls the keys and values that it goes on from, as an argument and in what it returns."""
    # Its name from transformers 5.24 on.
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def padded(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Any, Any]:
    """Return tokens and attention mask, both of shape (rows, length of the longest), on ``device``.

    They are filled up on the left: every row ends where the others do.
    """
    import torch

    width = max(map(len, rows))
    tokens = torch.tensor([[*[pad] * (width - len(row)), *row] for row in rows])
    mask = torch.tensor([[*[0] * (width - len(row)), *[1] * len(row)] for row in rows])
    return tokens.to(device), mask.to(device)


def positions(mask: Any) -> Any:
    """Return which token of its row each is."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


class ReadRows(NamedTuple):
    """What a pass says of a batch: the ``logits`` of the last positions, of shape (rows, positions, vocabulary).

    To go on from there: the keys and values of the ``past``, None where they were not wanted, and which of the
    positions so far are tokens of the row, as ``mask``.
    """

    logits: Any
    past: Any
    mask: Any


class Reader:
    """Reads batches; keeps what the last one began with, since the next batch may begin with the same.

    ``past`` is what the model calls the keys and values that it goes on from.
    """

    def __init__(self, model: Any) -> None:
        knows = inspect.signature(model.forward).parameters
        self._takes_positions, self._takes_number = "position_ids" in knows, "logits_to_keep" in knows
        self.past = name_of_past(model)
        self._kept: tuple[tuple[int, ...], ReadRows] | None = None

    def read(self, loaded: Loaded, batch: Batch[AnyRow], *, keep_past: bool = False) -> ReadRows:
        """Return the predictions that the batch's rows need, at least, of the same number for each row."""
        import torch

        begun = self._begin(loaded, batch) if batch[0].shared else None
        rests = [row.tokens[family.shared :] for family in batch for row in family.rows]
        tokens, mask = padded(rests, loaded.pad, loaded.device)
        if begun is not None:
            mask = torch.cat([begun.mask, mask], dim=-1)
        wanted = max(row.kept for row in rows_of(batch))
        return self._pass(loaded, tokens, mask, wanted, None if begun is None else begun.past, keep_past=keep_past)

    def forget(self) -> None:
        """Let go of what is kept."""
        self._kept = None

    def _begin(self, loaded: Loaded, batch: Batch[AnyRow]) -> ReadRows:
        """Return the beginning of every row."""
        import torch

        read = self._read_once(loaded, batch)
        numbers = [number for number, family in enumerate(batch) for _ in family.rows]
        family_of = torch.tensor(numbers, device=loaded.device)
        past = copy.deepcopy(read.past) if self._kept is not None else read.past
        past.batch_select_indices(family_of)
        return ReadRows(None, past, read.mask[family_of])

    def _read_once(self, loaded: Loaded, batch: Batch[AnyRow]) -> ReadRows:
        beginnings = [family.beginning for family in batch]
        if self._kept is not None and [self._kept[0]] == beginnings:
            return self._kept[1]
        # First: memory for two would be needed.
        self._kept = None
        tokens, mask = padded(beginnings, loaded.pad, loaded.device)
        read = self._pass(loaded, tokens, mask, 1, None, keep_past=True)
        # Of several families the next batch hardly has the same ones.
        if len(batch) == 1:
            self._kept = beginnings[0], read
        return read

    def _pass(self, loaded: Loaded, tokens: Any, mask: Any, wanted: int, past: Any, *, keep_past: bool) -> ReadRows:
        extra: dict[str, object] = {}
        if self._takes_positions:
            extra["position_ids"] = positions(mask)[:, -tokens.shape[1] :]
        if self._takes_number:
            extra["logits_to_keep"] = wanted
        if past is not None:
            extra[self.past] = past
        use_cache = keep_past or past is not None
        out = loaded.model(input_ids=tokens, attention_mask=mask, use_cache=use_cache, **extra)
        return ReadRows(out.logits, getattr(out, self.past) if keep_past else None, mask)
