"""Run rows through the model, which reads the rows' common beginning only once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.rows import AnyRow, Batch, rows_of


def can_go_on(model: Any) -> bool:
    """Return True if ``model`` can continue from the keys and values of other rows.

    Only transformers' own models with full attention in all layers can continue from other rows. Layers with sliding
    windows, recurrence or compression have a different kind of state.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    whole = layers == {"full_attention"} and not getattr(config, "sliding_window", None)
    takes = inspect.signature(model.forward).parameters.keys()
    knows = {name_of_past(model), "position_ids", "logits_to_keep"} <= takes
    ours = type(model).__module__.startswith("transformers.models.")
    return ours and whole and knows and not getattr(model, "_is_stateful", False)


def name_of_past(model: Any) -> str:
    """Return the name that ``model`` uses for past keys and values in its arguments and outputs."""
    # transformers 5.24 renamed it to "cache".
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def padded(rows: Sequence[Sequence[int]], pad: int, device: str) -> tuple[Any, Any]:
    """Return the tokens and the attention mask, both padded on the left to the length of the longest row."""
    import torch

    width = max(map(len, rows))
    tokens = torch.tensor([[*[pad] * (width - len(row)), *row] for row in rows])
    mask = torch.tensor([[*[0] * (width - len(row)), *[1] * len(row)] for row in rows])
    return tokens.to(device), mask.to(device)


def positions(mask: Any) -> Any:
    """Return the position of each token in its row."""
    return (mask.cumsum(-1) - 1).clamp(min=0)


class ReadRows(NamedTuple):
    """The output of a pass, with ``logits`` of the last positions, of shape (rows, positions, vocabulary).

    ``mask`` is the attention mask so far, and ``past`` holds the keys and values; the next pass needs both. ``past`` is
    None unless the caller requested it.
    """

    logits: Any
    past: Any
    mask: Any


class Reader:
    """Reads batches, and stores the beginning of the last batch, because the next batch may share it.

    ``past`` is the model's name for past keys and values.
    """

    def __init__(self, model: Any) -> None:
        knows = inspect.signature(model.forward).parameters
        self._takes_positions, self._takes_number = "position_ids" in knows, "logits_to_keep" in knows
        self.past = name_of_past(model)
        self._kept: tuple[tuple[int, ...], ReadRows] | None = None

    def read(self, loaded: Loaded, batch: Batch[AnyRow], *, keep_past: bool = False) -> ReadRows:
        """Return at least the predictions that the batch's rows need; their number is the same for each row."""
        import torch

        begun = self._begin(loaded, batch) if batch[0].shared else None
        rests = [row.tokens[family.shared :] for family in batch for row in family.rows]
        tokens, mask = padded(rests, loaded.pad, loaded.device)
        if begun is not None:
            mask = torch.cat([begun.mask, mask], dim=-1)
        wanted = max(row.kept for row in rows_of(batch))
        return self._pass(loaded, tokens, mask, wanted, None if begun is None else begun.past, keep_past=keep_past)

    def forget(self) -> None:
        """Delete the stored beginning."""
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
