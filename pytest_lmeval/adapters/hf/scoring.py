"""Compute log-likelihoods; the model reads a long text in windows."""

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
Split = tuple[list[int], int]
"""Tokens, and the number of tokens at their end that the model predicts."""


def readings(split: Mapping[int, Split], window: int | None) -> list[ScoredRow]:
    """Return the rows that answer all requests; a row that exceeds the ``window`` loses its first tokens.

    Requests for which the model reads the same tokens share a row, for example requests for single tokens after the
    same context.
    """
    rows: dict[tuple[int, ...], ScoredRow] = {}
    for number, (tokens, size) in split.items():
        read = tokens[:-1] if window is None else tokens[:-1][-window:]
        rows.setdefault(tuple(read), ScoredRow(read)).asked[number] = tokens[-size:]
    return list(rows.values())


def score(loaded: Loaded, reader: Reader, batch: Batch[ScoredRow]) -> _Answers:
    """Return the log-probabilities for the requests of a batch, by request number.

    If a log-probability is not finite, for example because the model's dtype overflows, the answer is an AdapterError.
    """
    import torch

    rows = rows_of(batch)
    logits = reader.read(loaded, batch).logits
    return dict(_answers(rows, torch.cat([one[-row.kept :] for row, one in zip(rows, logits, strict=True)])))


def _answers(rows: Sequence[ScoredRow], predicted: Any) -> Iterator[tuple[int, LogProb | AdapterError]]:
    """Yield the number and the answer of every request; for speed, look up all answers in one step."""
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
    """Return the log-probability of each target at its position, and True if the target is the model's first choice."""
    logprobs = predicted.float().log_softmax(-1)
    each = logprobs[places, targets]
    likely = each == logprobs.amax(-1)[places]
    # Finding the first token takes several times as long, so do it only if a target is among the likeliest.
    likely[likely.clone()] = predicted[places[likely]].argmax(-1) == targets[likely]
    return each.tolist(), likely.tolist()


def _logprob(tokens: Sequence[int], each: Sequence[float], greedy: bool) -> LogProb | AdapterError:
    total = math.fsum(each)
    if not math.isfinite(total):
        return AdapterError(f"the continuation's log-probability is {total}; a dtype of more range may help: float32")
    return LogProb(total, tuple(each), greedy, ids=tuple(tokens))


def windows(start: Sequence[int], tokens: Sequence[int], size: int | None) -> Iterator[Split]:
    """Yield windows over ``tokens`` for a model that reads at most ``size`` tokens; None means no limit.

    The first window's context is only ``start``. Each further window predicts the next ``size`` tokens; its context is
    the one token before them. The last window predicts the remaining tokens, with as much context as the model can
    read.
    """
    length = len(tokens) if size is None else size
    whole = [*start, *tokens]
    done = 0
    while done < len(tokens):
        count = min(length, len(tokens) - done)
        end = len(start) + done + count
        # A window consists of the tokens to read and one further token. The first window has no text before it.
        begin = end - count - len(start) if done == 0 else end - length - 1
        yield whole[max(0, begin) : end], count
        done += count


def joined(parts: Sequence[LogProb]) -> LogProb:
    """Combine the log-probabilities of windows into the log-probability of the whole text."""
    tokens = tuple(each for part in parts for each in part.tokens)
    ids = tuple(each for part in parts for each in part.ids)
    times = [part.latency_ms for part in parts if part.latency_ms is not None]
    latency = math.fsum(times) if times else None
    return LogProb(math.fsum(part.total for part in parts), tokens, all(part.greedy for part in parts), latency, ids)
