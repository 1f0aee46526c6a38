"""Run rows through the model, which reads their common beginning only once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.rows import AnyRow, Batch, rows_of


def can_go_on(model: Any) -> bool:
    """Return True if ``model`` can continue from keys and values that were computed for other rows.

    Only the library's models with full attention in all layers can continue in this way. Layers with sliding windows,
    recurrence or compression keep a different kind of state.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    whole = layers == {"full_attention"} and not getattr(config, "sliding_window", None)
    takes = inspect.signature(model.forward).parameters.keys()
    knows = {name_of_past(model), "position_ids", "logits_to_keep"} <= takes
    ours = type(model).__module__.startswith("transformers.models.")
    return ours and whole and knows and not getattr(model, "_is_stateful", False)


def name_of_past(model: Any) -> str:
    """Return the name of past keys and values among the arguments and outputs of ``model``."""
    # transformers 5.24 renamed it to "cache".
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def padded(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Any, Any]:
    """Return tokens and attention mask, both of shape (rows, length of the longest), padded on the left."""
    import torch

    width = max(map(len, rows))
    tokens = torch.tensor([[*[pad] * (width - len(row)), *row] for row in rows])
    mask = torch.tensor([[*[0] * (width - len(row)), *[1] * len(row)] for row in rows])
    return tokens.to(device), mask.to(device)


def positions(mask: Any) -> Any:
    """Return the position of each token in its row."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


class ReadRows(NamedTuple):
    """The output of a pass: ``logits`` of the last positions, of shape (rows, positions, vocabulary).

    The next pass needs the attention ``mask`` so far, and the ``past`` keys and values, which are computed only on
    request.
    """

    logits: Any
    past: Any
    mask: Any


class Reader:
    """Reads batches, and keeps the beginning of the last batch, which the next batch may share.

    ``past`` is the model's name for past keys and values.
    """

    def __init__(self, model: Any) -> None:
        knows = inspect.signature(model.forward).parameters
        self._takes_positions, self._takes_number = "position_ids" in knows, "logits_to_keep" in knows
        self.past = name_of_past(model)
        self._kept: tuple[tuple[int, ...], ReadRows] | None = None

    def read(self, loaded: Loaded, batch: Batch[AnyRow], *, keep_past: bool = False) -> ReadRows:
        """Return at least the predictions that the rows of the batch need, the same number for each row."""
        import torch

        begun = self._begin(loaded, batch) if batch[0].shared else None
        rests = [row.tokens[family.shared :] for family in batch for row in family.rows]
        tokens, mask = padded(rests, loaded.pad, loaded.device)
        if begun is not None:
            mask = torch.cat([begun.mask, mask], dim=-1)
        wanted = max(row.kept for row in rows_of(batch))
        return self._pass(loaded, tokens, mask, wanted, None if begun is None else begun.past, keep_past=keep_past)

    def forget(self) -> None:
        """Drop the stored beginning."""
        self._kept = None

    def _begin(self, loaded: Loaded, batch: Batch[AnyRow]) -> ReadRows:
        import torch

        read = self._read_once(loaded, batch)
        family_of = torch.tensor([n for n, family in enumerate(batch) for _ in family.rows], device=loaded.device)
        past = copy.deepcopy(read.past) if self._kept is not None else read.past
        past.batch_select_indices(family_of)
        return ReadRows(None, past, read.mask[family_of])

    def _read_once(self, loaded: Loaded, batch: Batch[AnyRow]) -> ReadRows:
        beginnings = [family.beginning for family in batch]
        if self._kept is not None and [self._kept[0]] == beginnings:
            return self._kept[1]
        # Drop the old beginning first: memory may not suffice for two beginnings.
        self._kept = None
        tokens, mask = padded(beginnings, loaded.pad, loaded.device)
        read = self._pass(loaded, tokens, mask, 1, None, keep_past=True)
        # If a batch has several families, the next batch seldom has the same families.
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
