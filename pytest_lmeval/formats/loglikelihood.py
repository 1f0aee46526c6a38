"""Score log-probabilities: make the requests for options, choose an option, and record the details.

Every task with ``LogLikelihood`` requests uses :func:`ranked`, so that all such tasks record the same details. Tokens
with which all options begin do not affect the choice; the comparison covers only the tokens after them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.probability import lowest, per_byte, per_character, softmax
from pytest_lmeval.types import LogLikelihood, LogProb, Message, Response

Rule = Literal["total", "tokens", "characters", "bytes"]
"""The divisor of log-probabilities in a comparison of options. ``total`` means no division."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option's log-probability, the number and mean loss of its compared tokens, and whether it is greedy."""

    total: float
    loss: float
    tokens: int
    greedy: bool


@dataclass(frozen=True, slots=True)
class Ranked:
    """One example's options in the task's order, with their log-probabilities.

    ``asked`` contains one option for each request, because options with equal text share a request.
    """

    texts: Sequence[str]
    options: Sequence[Option]
    asked: Sequence[Option]

    @property
    def totals(self) -> list[float]:
        """Each option's log-probability."""
        return [option.total for option in self.options]

    def values(self, rule: Rule) -> list[float]:
        """Return each option's value; the option with the highest value is chosen.

        An empty text counts as one character.
        """
        if rule == "tokens":
            return [-option.loss for option in self.options]
        if rule == "total":
            return self.totals
        return (per_character if rule == "characters" else per_byte)(self.totals, self.texts)

    def best(self, rule: Rule) -> int:
        """Return the zero-based index of the first option with the highest value; raise ScoringError for NaN."""
        values = self.values(rule)
        if any(math.isnan(value) for value in values):
            raise ScoringError(f"log-probabilities {values!r:.200}: expected numbers")
        return lowest([-value for value in values])

    def record(self, chosen: int | None = None) -> dict[str, Any]:
        """Return the details of the score, with ``logprobs`` by text and ``options`` for :func:`log_probs_of`.

        With ``chosen``, the details also contain this index and the option's ``confidence``, from the softmax of the
        totals. If a log-probability is not finite, it becomes None, and ``confidence`` and ``options`` are missing.
        """
        logprobs = {
            text: round(total, 6) if math.isfinite(total) else None
            for text, total in zip(self.texts, self.totals, strict=True)
        }
        found: dict[str, Any] = {"logprobs": logprobs} if chosen is None else {"chosen": chosen, "logprobs": logprobs}
        if not all(math.isfinite(option.total) and math.isfinite(option.loss) for option in self.options):
            return found
        confidence = {} if chosen is None else {"confidence": softmax(self.totals)[chosen]}
        return {**found, **confidence, "options": [asdict(option) for option in self.asked]}


def option_requests(
    pairs: Sequence[tuple[str, str]], task: str, example: str, messages: tuple[Message, ...] = ()
) -> tuple[LogLikelihood, ...]:
    """Return a request for each distinct pair of context and continuation.

    The contexts are the text form of the conversation in ``messages``.
    """
    return tuple(LogLikelihood(*pair, task, example, messages) for pair in dict.fromkeys(pairs))


def ranked(
    responses: Sequence[Response],
    texts: Sequence[str],
    pairs: Sequence[Hashable] = (),
    compared: Callable[[Sequence[LogProb]], list[Option]] | None = None,
) -> Ranked:
    """Return the options ``texts`` with the responses to the requests of :func:`option_requests`.

    ``pairs`` identifies the requests; the default is ``texts``. ``compared`` is :func:`whole` (the default),
    :func:`by_beginning` or :func:`by_ending`. Raises ScoringError if a response is not a log-probability.
    """
    given = [response for response in responses if isinstance(response, LogProb)]
    if len(given) != len(responses):
        raise ScoringError("expected log-probabilities, got a completion")
    asked = (compared or whole)(given)
    keys: Sequence[Hashable] = pairs or texts
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Ranked(texts, [asked[numbers[key]] for key in keys], asked)


def whole(given: Sequence[LogProb]) -> list[Option]:
    """Return the options, compared by all their tokens."""
    return [_option(one, 0, len(_tokens(one))) for one in given]


def by_beginning(given: Sequence[LogProb]) -> list[Option]:
    """Return options after the same context, compared from the first token in which they differ.

    Compare all tokens if the adapter reports no token ids, or if an option has no token left because another option
    begins with it.
    """
    shared = _shared([one.ids for one in given])
    if any(len(one.ids) != len(one.tokens) or len(one.tokens) <= shared for one in given):
        return whole(given)
    return [_option(one, shared, len(one.tokens)) for one in given]


def by_ending(given: Sequence[LogProb]) -> list[Option]:
    """Return options with the same text after different contexts, compared by the last tokens that all share.

    The total covers only the shared tokens. Compare all tokens if the adapter reports no token ids, or if the options
    share no token.
    """
    shared = _shared([one.ids[::-1] for one in given])
    if shared == 0 or any(len(one.ids) != len(one.tokens) for one in given):
        return whole(given)
    spans = [(one, len(one.tokens) - shared, len(one.tokens)) for one in given]
    return [
        _option(LogProb(math.fsum(one.tokens[begin:]), one.tokens, one.greedy), begin, end) for one, begin, end in spans
    ]


def log_probs_of(details: Mapping[str, Any]) -> list[LogProb]:
    """Return the log-probabilities that :meth:`Ranked.record` wrote to ``details``, or [] if they are missing.

    The details contain only the compared tokens, so a comparison of all tokens in the result gives the same score.
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
    # An adapter may report only the sum.
    return one.tokens or (one.total,)


def _shared(rows: Sequence[Sequence[int | str]]) -> int:
    columns = enumerate(zip(*rows, strict=False))
    return next((number for number, column in columns if len(set(column)) > 1), min(map(len, rows)))
