"""What of several options is compared: from where they differ, where they end alike, or whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.loglikelihood import (
    Ranked,
    Rule,
    by_beginning,
    by_ending,
    log_probs_of,
    option_requests,
    ranked,
    whole,
)
from pytest_lmeval.types import Completion, LogLikelihood, LogProb
from tests.tables import each_row

losses = st.lists(st.floats(-20, -0.001), min_size=1, max_size=6)


def prob(ids: str, *tokens: float, total: float | None = None, greedy: bool = False) -> LogProb:
    return LogProb(sum(tokens) if total is None else total, tokens, greedy, ids=tuple(ids))


def test_what_options_begin_with_alike_is_not_compared() -> None:
    first, second = by_beginning([prob("abc", -9.0, -1.0, -3.0), prob("ad", -9.0, -4.0)])
    assert (2.0, 2, -13.0) == (first.loss, first.tokens, first.total)
    assert (4.0, 1, -13.0) == (second.loss, second.tokens, second.total)


def test_the_border_is_where_any_two_differ() -> None:
    options = by_beginning([prob("abx", -1.0, -2.0, -3.0), prob("aby", -1.0, -2.0, -4.0), prob("ac", -1.0, -7.0)])
    assert [2.5, 3.0, 7.0] == [option.loss for option in options]


def test_options_alike_are_compared_whole() -> None:
    assert [1.0, 1.0] == [option.loss for option in by_beginning([prob("a", -1.0), prob("a", -1.0)])]


def test_where_nothing_tells_tokens_apart_all_of_them_are_compared() -> None:
    given = [LogProb(-4.0, (-1.0, -3.0)), LogProb(-6.0)]
    assert [(2.0, 2), (6.0, 1)] == [(option.loss, option.tokens) for option in by_beginning(given)]
    assert whole(given) == by_beginning(given) == by_ending(given)


def test_what_follows_different_contexts_is_compared_where_it_is_the_same() -> None:
    first, second = by_ending([prob("xbc", -9.0, -1.0, -2.0), prob("yybc", -9.0, -9.0, -3.0, -5.0)])
    assert (1.5, 2, -3.0) == (first.loss, first.tokens, first.total)
    assert (4.0, 2, -8.0) == (second.loss, second.tokens, second.total)


def test_endings_that_share_no_token_are_compared_whole() -> None:
    assert [1.0, 2.0] == [option.loss for option in by_ending([prob("a", -1.0), prob("bc", -1.0, -3.0)])]


@given(st.lists(losses, min_size=1, max_size=4), st.booleans())
def test_what_was_written_down_is_scored_the_same_again(rows: list[list[float]], greedy: bool) -> None:
    given = [prob("abcdefgh"[number:][: len(row)], *row, greedy=greedy) for number, row in enumerate(rows)]
    options = by_beginning(given)
    details = Ranked("abcd"[: len(options)], options, options).record(0)
    again = by_beginning(log_probs_of(json.loads(json.dumps(details))))
    assert [(one.total, one.tokens, one.greedy) for one in options] == [(x.total, x.tokens, x.greedy) for x in again]
    assert [pytest.approx(one.loss) for one in options] == [one.loss for one in again]


@each_row(
    "details",
    [
        {},
        {"options": 5},
        {"options": [{"total": -1.0}]},
        {"options": [{"total": -1.0, "loss": 1.0, "tokens": 0, "greedy": True}]},
        {"options": [{"total": float("nan"), "loss": 1.0, "tokens": 1, "greedy": True}]},
        {"options": [{"total": -1.0, "loss": 1.0, "tokens": 10**9, "greedy": True}]},
        {"options": ["total"]},
        {"repeats": ["total"]},
    ],
)
def test_details_of_another_kind_hold_no_log_probabilities(details: dict[str, object]) -> None:
    assert [] == log_probs_of(details)


def test_a_completion_is_no_log_probability() -> None:
    with pytest.raises(ScoringError, match="got a completion"):
        ranked([LogProb(-1.0), Completion("a")], ["a", "b"])


def test_options_that_read_the_same_are_asked_for_once_and_count_each() -> None:
    pairs = [("2 + 2 =", "4"), ("2 + 2 =", "5"), ("2 + 2 =", "4")]
    expected = (LogLikelihood("2 + 2 =", "4", "sums", "a"), LogLikelihood("2 + 2 =", "5", "sums", "a"))
    assert expected == option_requests(pairs, "sums", "a")
    options = ranked([LogProb(-1.0), LogProb(-1.0)], ["4", "5", "4"], pairs)
    assert [[-1.0, -1.0, -1.0], 2] == [options.totals, len(options.asked)]
    assert pytest.approx(1 / 3) == options.record(1)["confidence"]


@each_row(("rule", "best"), [("total", 0), ("tokens", 1), ("characters", 2), ("bytes", 3)])
def test_the_rule_says_what_a_log_probability_is_divided_by(rule: Rule, best: int) -> None:
    given = [prob("a", -4.0), prob("bcdefg", *[-1.0] * 6), prob("hi", -3.5, -3.5), prob("jk", -5.5, -5.5)]
    assert best == ranked(given, ["a", "b", "hhhhhhhhhh", "\u20ac" * 8]).best(rule)


def test_the_first_of_equals_is_chosen() -> None:
    given = [LogProb(-2.0), LogProb(-1.0), LogProb(-1.0)]
    rules: list[Rule] = ["total", "tokens", "characters", "bytes"]
    assert [1, 1, 1, 1] == [ranked(given, ["a", "b", "c"]).best(rule) for rule in rules]


def test_the_record_tells_what_was_chosen_how_surely_and_by_which_numbers() -> None:
    options = ranked([LogProb(-1.0, greedy=True), LogProb(-1.0)], ["yes", "no"])
    written = [
        {"total": -1.0, "loss": 1.0, "tokens": 1, "greedy": True},
        {"total": -1.0, "loss": 1.0, "tokens": 1, "greedy": False},
    ]
    told = {"logprobs": {"yes": -1.0, "no": -1.0}, "options": written}
    assert told == options.record()
    assert {**told, "chosen": 0, "confidence": 0.5} == options.record(0)


def test_of_a_log_probability_that_is_not_finite_nothing_can_be_restored() -> None:
    options = ranked([LogProb(-1.0), LogProb(float("-inf"))], ["yes", "no"])
    assert {"chosen": 0, "logprobs": {"yes": -1.0, "no": None}} == options.record(options.best("total"))
