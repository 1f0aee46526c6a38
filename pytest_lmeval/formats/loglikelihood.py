"""Options as their tokens' log-probabilities make them: what is compared, and how that is written down.

What two options begin with alike says nothing about which is better, so only what differs is compared; the border is
looked for among tokens, since a text can be cut in the middle of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.types import LogProb, Response

__all__ = ["Option", "as_written", "by_beginning", "by_ending", "log_probs", "log_probs_of", "record", "whole"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its log-probability, the mean loss over the ``tokens`` that are compared, and if it is greedy."""

    total: float
    loss: float
    tokens: int
    greedy: bool


def log_probs(responses: Sequence[Response]) -> list[LogProb]:
    """Return the responses; raise ScoringError where one is no log-probability."""
    found = [response for response in responses if isinstance(response, LogProb)]
    if len(found) != len(responses):
        raise ScoringError("expected log-probabilities, got a completion")
    return found


def whole(given: Sequence[LogProb]) -> list[Option]:
    """Return the options with all their tokens compared."""
    return [_option(one, 0, len(_tokens(one))) for one in given]


def by_beginning(given: Sequence[LogProb]) -> list[Option]:
    """Return the options compared from the first token on in which they differ: texts after the same context.

    Where an option has no token left, as one that another begins with, or the adapter tells no tokens apart, all of
    them are compared whole.
    """
    alike = _alike([one.ids for one in given])
    if _leaves_nothing(given, alike):
        return whole(given)
    return [_option(one, alike, len(one.tokens)) for one in given]


def by_ending(given: Sequence[LogProb]) -> list[Option]:
    """Return the options compared in the last tokens that are the same for all: a text after different contexts.

    The total is that of these tokens. Where there are none, the options are compared whole.
    """
    alike = _alike([one.ids[::-1] for one in given])
    if alike == 0 or any(len(one.ids) != len(one.tokens) for one in given):
        return whole(given)
    spans = [(one, len(one.tokens) - alike, len(one.tokens)) for one in given]
    return [
        _option(LogProb(math.fsum(one.tokens[begin:]), one.tokens, one.greedy), begin, end) for one, begin, end in spans
    ]


def as_written(options: Sequence[Option]) -> list[dict[str, Any]]:
    """Return the options as JSON: what :func:`log_probs_of` reads again."""
    return [asdict(option) for option in options]


def record(given: Sequence[LogProb]) -> dict[str, Any]:
    """Return the details from which :func:`log_probs_of` restores totals; empty where a number is not finite."""
    options = whole(given)
    finite = all(math.isfinite(option.total) and math.isfinite(option.loss) for option in options)
    return {"options": as_written(options)} if finite else {}


def log_probs_of(details: Mapping[str, Any]) -> list[LogProb]:
    """Return log-probabilities that are scored as those were which ``details`` tell of; none where they tell of none.

    What had been left out of the comparison is not there any more, so that they are compared whole.
    """
    first = (details.get("repeats") or [details])[0]
    try:
        return [_restored(**fields) for fields in first.get("options", ())]
    except (AttributeError, TypeError, ValueError):
        return []


def _restored(total: float, loss: float, tokens: int, greedy: bool) -> LogProb:
    if not (math.isfinite(total) and math.isfinite(loss) and 0 < tokens < 10**6):
        raise ValueError
    return LogProb(total, (-loss,) * tokens, greedy)


def _option(one: LogProb, begin: int, end: int) -> Option:
    compared = _tokens(one)[begin:end]
    return Option(one.total, -math.fsum(compared) / len(compared), len(compared), one.greedy)


def _tokens(one: LogProb) -> tuple[float, ...]:
    # An adapter may know nothing but the sum.
    return one.tokens or (one.total,)


def _alike(rows: Sequence[Sequence[int | str]]) -> int:
    columns = enumerate(zip(*rows, strict=False))
    return next((number for number, column in columns if len(set(column)) > 1), min(map(len, rows)))


def _leaves_nothing(given: Sequence[LogProb], alike: int) -> bool:
    return any(len(one.ids) != len(one.tokens) or len(one.tokens) <= alike for one in given)
