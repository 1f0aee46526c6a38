"""How probable the model finds a given text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.adapters.hf.loading import Loaded
from pytest_lmeval.adapters.hf.passes import Reader
from pytest_lmeval.adapters.hf.rows import Batch, ScoredRow, rows_of
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogProb

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


def score(loaded: Loaded, reader: Reader, batch: Batch[ScoredRow]) -> _Answers:
    """Return the log-probabilities that the families ask for, by request number.

    One that is not a finite number, as of a model that overflows its dtype, is an AdapterError.
    """
    import torch

    rows = rows_of(batch)
    logits = reader.read(loaded, batch).logits
    return dict(_answers(rows, torch.cat([one[-row.kept :] for row, one in zip(rows, logits, strict=True)])))


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
