"""How probable the model finds a given text."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.adapters.hf.batches import RowFamily, ScoredRow, padded
from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogProb

_LOGITS_PER_TOKEN = 16384
"""So many logits are taken to need as much memory as one token that is read."""
_HELD_PER_TOKEN = 4
"""So many tokens' keys and values are taken to need as much memory as one token that is read."""
_ENOUGH_FOR_A_PROCESSOR = 1024
"""A processor computes no faster on more tokens at a time, and rows of more different lengths are padded more."""

_Answers = dict[int, LogProb | AdapterError]


def readings(split: Mapping[int, tuple[list[int], int]], window: int | None) -> list[ScoredRow]:
    """Return the rows that answer every request; ``split`` has the tokens and the continuation's number of them.

    A row is cropped on its left to the ``window``. Requests for which the model reads the same, as those for one
    token after the same context, share a row.
    """
    rows: dict[tuple[int, ...], ScoredRow] = {}
    for number, (tokens, size) in split.items():
        read = tokens[:-1] if window is None else tokens[:-1][-window:]
        rows.setdefault(tuple(read), ScoredRow(read)).asked[number] = tokens[-size:]
    return list(rows.values())


def batches(groups: Sequence[RowFamily], limit: int, vocabulary: int) -> Iterator[list[RowFamily]]:
    """Yield the families in batches of at most ``limit`` tokens, the largest first, each of a single one at least.

    Those with a shared beginning and those without go through the model in different ways, and never together.
    """
    pieces = [part for family in groups for part in _parts(family, limit, vocabulary)]
    batch: list[RowFamily] = []
    size = _Size()
    for family in sorted(pieces, key=lambda family: (family.shared > 0, family.width), reverse=True):
        larger = size.with_family(family)
        if batch and ((family.shared > 0) != (batch[0].shared > 0) or not larger.fits(limit, vocabulary)):
            yield batch
            batch, larger = [], _Size().with_family(family)
        batch.append(family)
        size = larger
    if batch:
        yield batch


def _parts(family: RowFamily, limit: int, vocabulary: int) -> list[RowFamily]:
    if len(family.rows) == 1 or _Size().with_family(family).fits(limit, vocabulary):
        return [family]
    middle = len(family.rows) // 2
    halves = (family.rows[:middle], family.rows[middle:])
    return [
        part
        for rows in halves
        for part in _parts(RowFamily(rows, family.shared if len(rows) > 1 else 0), limit, vocabulary)
    ]


def batch_limit(batch_tokens: int, device: str) -> int:
    """Return how many of the ``batch_tokens`` that are allowed are worth reading at a time on ``device``."""
    return min(batch_tokens, _ENOUGH_FOR_A_PROCESSOR) if device == "cpu" else batch_tokens


@dataclass(frozen=True, slots=True)
class _Size:
    """What a batch takes: families, rows, and the most tokens of each kind that one of them has."""

    families: int = 0
    rows: int = 0
    shared: int = 0
    rest: int = 0
    kept: int = 0

    def with_family(self, family: RowFamily) -> _Size:
        """Return the size of the batch with one more family."""
        return _Size(
            self.families + 1,
            self.rows + len(family.rows),
            max(self.shared, family.shared),
            max(self.rest, family.rest),
            max(self.kept, family.kept),
        )

    def fits(self, limit: int, vocabulary: int) -> bool:
        """Tell whether ``limit`` tokens hold what is read, the keys and values of every row, and the predictions."""
        read = self.families * self.shared + self.rows * self.rest
        held = self.rows * (self.shared + self.rest)
        logits = self.rows * self.kept * vocabulary
        return max(read, held / _HELD_PER_TOKEN, logits / _LOGITS_PER_TOKEN) <= limit


def score(loaded: Loaded, batch: Sequence[RowFamily]) -> _Answers:
    """Return the log-probabilities that the families ask for, by request number.

    One that is not a finite number, as of a model that overflows its dtype, is an AdapterError.
    """
    rows = [row for family in batch for row in family.rows]
    predicted = _go_on(loaded, batch) if batch[0].shared else _read(loaded, rows)
    return dict(_answers(rows, predicted))


def _read(loaded: Loaded, rows: Sequence[ScoredRow]) -> Any:
    """Return the predictions that the rows ask for, row by row, of shape (predictions, vocabulary)."""
    import torch

    tokens, mask = padded([row.tokens for row in rows], loaded.pad, loaded.device, left=True)
    logits = _logits(loaded.model, tokens, mask, max(row.kept for row in rows))
    return torch.cat([one[-row.kept :] for row, one in zip(rows, logits, strict=True)])


def _logits(model: Any, tokens: Any, mask: Any, wanted: int) -> Any:
    """Return the predictions of the last ``wanted`` positions, at least, of shape (rows, positions, vocabulary)."""
    knows = inspect.signature(model.forward).parameters
    extra: dict[str, Any] = {}
    if "position_ids" in knows:
        extra["position_ids"] = _positions(mask)
    if "logits_to_keep" in knows:
        extra["logits_to_keep"] = wanted
    return model(input_ids=tokens, attention_mask=mask, use_cache=False, **extra).logits


def _go_on(loaded: Loaded, batch: Sequence[RowFamily]) -> Any:
    """Return the same as :func:`_read`, having read what a family shares once."""
    import torch

    begun, mask = padded(
        [family.rows[0].tokens[: family.shared] for family in batch], loaded.pad, loaded.device, left=True
    )
    first = loaded.model(
        input_ids=begun, attention_mask=mask, position_ids=_positions(mask), use_cache=True, logits_to_keep=1
    )
    # Every row gets the keys and values of its family's beginning.
    family_of = torch.tensor([number for number, family in enumerate(batch) for _ in family.rows], device=loaded.device)
    first.past_key_values.batch_select_indices(family_of)
    rests = [row.tokens[family.shared :] for family in batch for row in family.rows]
    tokens, own = padded(rests, loaded.pad, loaded.device, left=False)
    whole = torch.cat([mask[family_of], own], dim=-1)
    width, kept = tokens.shape[1], [row.kept for family in batch for row in family.rows]
    wanted = max(width - len(rest) + number for rest, number in zip(rests, kept, strict=True))
    logits = loaded.model(
        input_ids=tokens,
        attention_mask=whole,
        position_ids=_positions(whole)[:, -width:],
        past_key_values=first.past_key_values,
        use_cache=True,
        logits_to_keep=wanted,
    ).logits
    ends = [len(rest) - width + wanted for rest in rests]
    return torch.cat([one[end - number : end] for one, end, number in zip(logits, ends, kept, strict=True)])


def _positions(mask: Any) -> Any:
    return (mask.cumsum(-1) - 1).clamp(min=0)


def _answers(rows: Sequence[ScoredRow], predicted: Any) -> Iterator[tuple[int, LogProb | AdapterError]]:
    """Yield every request's number and answer; all are looked up at once, since a step each would cost more."""
    import torch

    asked: list[tuple[int, list[int]]] = []
    places: list[int] = []
    targets: list[int] = []
    end = 0
    for row in rows:
        end += row.kept
        for number, tokens in row.asked.items():
            asked.append((number, tokens))
            places += range(end - len(tokens), end)
            targets += tokens
    each, greedy = _look_up(predicted, *(torch.tensor(one, device=predicted.device) for one in (places, targets)))
    begin = 0
    for number, tokens in asked:
        span = slice(begin, begin + len(tokens))
        yield number, _logprob(tokens, each[span], all(greedy[span]))
        begin += len(tokens)


def _look_up(predicted: Any, places: Any, targets: Any) -> tuple[list[float], list[bool]]:
    """Return the log-probability of each target at its place, and whether it is the first of the likeliest there."""
    logprobs = predicted.float().log_softmax(-1)
    each = logprobs[places, targets]
    likely = each == logprobs.amax(-1)[places]
    # To find out which is the first takes several times as long, so only where a target is among them.
    likely[likely.clone()] = predicted[places[likely]].argmax(-1) == targets[likely]
    return each.tolist(), likely.tolist()


def _logprob(tokens: Sequence[int], each: Sequence[float], greedy: bool) -> LogProb | AdapterError:
    total = math.fsum(each)
    if not math.isfinite(total):
        return AdapterError(f"the continuation's log-probability is {total}; a dtype of more range may help: float32")
    return LogProb(total, tuple(each), greedy, ids=tuple(tokens))
