"""The toy's log-probabilities: counts that can be checked by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.adapters.bigram import Bigram
from pytest_lmeval.adapters.toy import ToyAdapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogLikelihood, LogProb

MODEL = Bigram(["ab", "ac", "ab"])


def found(answer: LogProb | AdapterError) -> LogProb:
    assert isinstance(answer, LogProb), answer
    return answer


def test_a_pair_is_as_probable_as_it_was_counted() -> None:
    # a is followed by b twice, by c once; b by the end of a line twice.
    answer = found(MODEL.log_prob(LogLikelihood("x a", "b\n")))
    assert [pytest.approx(math.log(3 / 259)), pytest.approx(math.log(3 / 258))] == list(answer.tokens)
    assert pytest.approx(math.log(3 / 259) + math.log(3 / 258)) == answer.total
    assert (ord("b"), ord("\n")) == answer.ids


def test_the_likeliest_bytes_are_greedy() -> None:
    assert found(MODEL.log_prob(LogLikelihood("", "ab\n"))).greedy
    assert not found(MODEL.log_prob(LogLikelihood("", "ac"))).greedy


def test_only_the_last_byte_of_the_context_counts() -> None:
    one, other = (found(MODEL.log_prob(LogLikelihood(context, "b"))) for context in ("a", "zzz\u00fca"))
    assert one == other


def test_an_empty_context_is_the_beginning_of_a_line() -> None:
    assert found(MODEL.log_prob(LogLikelihood("a\n", "a"))) == found(MODEL.log_prob(LogLikelihood("", "a")))


@given(st.binary(min_size=1, max_size=1))
def test_the_probabilities_of_all_bytes_sum_up_to_one(first: bytes) -> None:
    everything = [(1 + MODEL._pairs[first[0], then]) / (256 + MODEL._firsts[first[0]]) for then in range(256)]
    assert pytest.approx(1) == math.fsum(everything)


def test_the_toy_answers_in_order_and_says_what_it_cannot() -> None:
    asked: Sequence[LogLikelihood] = [LogLikelihood("capital of", text) for text in (" australia", "", " \ud800")]
    first, empty, odd = ToyAdapter().loglikelihood(asked)
    assert len(" australia") == len(found(first).tokens)
    assert "the continuation is empty" == str(empty)
    assert 4 == len(found(odd).tokens)


def test_the_toy_prefers_what_it_knows() -> None:
    known, unknown = ToyAdapter().loglikelihood([LogLikelihood("", "the"), LogLikelihood("", "xqz")])
    assert found(known).total > found(unknown).total
