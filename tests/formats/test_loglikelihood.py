"""What of several options is compared: from where they differ, where they end alike, or whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.loglikelihood import as_written, by_beginning, by_ending, log_probs, log_probs_of, whole
from pytest_lmeval.types import Completion, LogProb

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


@pytest.mark.parametrize("turned", [False, True])
def test_an_option_that_another_begins_with_is_compared_whole_wherever_it_stands(turned: bool) -> None:
    given = [prob("ab", -1.0, -1.0), prob("abc", -1.0, -1.0, -4.0)]
    options = by_beginning(given[::-1] if turned else given)
    assert {2: 1.0, 3: 2.0} == {option.tokens: option.loss for option in options}


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
    again = by_beginning(log_probs_of(json.loads(json.dumps({"options": as_written(options)}))))
    assert [(one.total, one.tokens, one.greedy) for one in options] == [(x.total, x.tokens, x.greedy) for x in again]
    assert [pytest.approx(one.loss) for one in options] == [one.loss for one in again]


@pytest.mark.parametrize(
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
        log_probs([LogProb(-1.0), Completion("a")])
