"""How probable a text is: what a plain loop over the softmax says, whatever the batch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.adapters.hf.scoring import readings
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogLikelihood, LogProb, Message
from tests.adapters.hf.asking import split

from .tiny_model import FACTS, WINDOW

WORDS = ["honey", " Paris", " the", " sun", "\n", "Zürich ", "🙂", " a cat", "What is", " capital", "s", " "]
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map("".join)
pairs = st.lists(st.tuples(phrases | st.just(""), phrases), min_size=1, max_size=6)
quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def found(answer: LogProb | AdapterError) -> LogProb:
    assert isinstance(answer, LogProb), answer
    return answer


def by_hand(model: HfAdapter, tokens: list[int], size: int) -> LogProb:
    """Return what one forward pass over exactly these tokens says of the last ``size`` of them."""
    import torch

    with torch.inference_mode():
        logits = model._open().model(input_ids=torch.tensor([tokens])).logits[0]
    places = range(len(tokens) - size - 1, len(tokens) - 1)
    each = [float(torch.log_softmax(logits[place], -1)[tokens[place + 1]]) for place in places]
    greedy = all(int(logits[place].argmax()) == tokens[place + 1] for place in places)
    return LogProb(math.fsum(each), tuple(each), greedy)


def assert_close(expected: LogProb, answer: LogProb | AdapterError) -> None:
    assert list(expected.tokens) == pytest.approx(list(found(answer).tokens), abs=1e-4)
    assert expected.total == pytest.approx(found(answer).total, abs=1e-4)
    assert expected.greedy == found(answer).greedy


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@given(asked=pairs, size=st.integers(1, 6))
@quick
def test_it_is_what_a_plain_loop_says_in_any_batch(
    request: pytest.FixtureRequest, name: str, asked: list[tuple[str, str]], size: int
) -> None:
    model = request.getfixturevalue(name)
    requests = [LogLikelihood(context, continuation) for context, continuation in asked]
    parts = [model.loglikelihood(requests[first : first + size]) for first in range(0, len(requests), size)]
    answers = [answer for part in parts for answer in part]
    for one, answer in zip(requests, answers, strict=True):
        assert_close(by_hand(model, *split(model, one.context, one.continuation)), answer)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_known_answer_is_greedy_and_likelier_than_another(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    question = FACTS[0][0]
    right, wrong = map(
        found, model.loglikelihood([LogLikelihood(question, " Paris"), LogLikelihood(question, " Rome")])
    )
    assert right.greedy
    assert not wrong.greedy
    assert wrong.total + 3 < right.total <= 0
    assert right.total == pytest.approx(sum(right.tokens))


def test_a_conversation_is_written_by_the_chat_template(llama: HfAdapter) -> None:
    question = LogLikelihood("Hi", "honey", messages=(Message("user", "Hi"),))
    cued = LogLikelihood("Hi So", " honey", messages=(Message("user", "Hi"), Message("assistant", "So")))
    texts = ("<s><|user|>Hi<|end|><|assistant|>honey", "<s><|user|>Hi<|end|><|assistant|>So honey")
    tokenizer = llama._open().tokenizer
    splits = [split for split in llama._prompts.split_requests([question, cued]) if isinstance(split, tuple)]

    assert texts == tuple(tokenizer.decode(tokens) for tokens, _ in splits)
    assert ["honey", " honey"] == [tokenizer.decode(tokens[-size:]) for tokens, size in splits]
    for (tokens, size), answer in zip(splits, llama.loglikelihood([question, cued]), strict=True):
        assert_close(by_hand(llama, tokens, size), answer)


def test_a_conversation_that_the_template_refuses_is_the_error_of_its_requests(llama: HfAdapter) -> None:
    refused = LogLikelihood("Hi", "honey", messages=(Message("tool", "Hi"),))
    error, answer = llama.loglikelihood([refused, LogLikelihood("Hi", "honey")])

    assert isinstance(error, AdapterError)
    assert "unknown role tool" in str(error)
    assert isinstance(answer, LogProb)


def test_a_model_without_a_template_reads_the_text_of_a_conversation(gpt2: HfAdapter) -> None:
    talk = (Message("user", "What do bees make?"),)
    told = gpt2.loglikelihood([LogLikelihood("What do bees make?", " honey", messages=talk)])

    assert_close(found(gpt2.loglikelihood([LogLikelihood("What do bees make?", " honey")])[0]), told[0])


def test_a_chat_template_is_not_applied_to_text(llama: HfAdapter) -> None:
    whole, size = split(llama, "Hi", " there")
    tokenizer = llama._open().tokenizer
    assert "<s>Hi there" == tokenizer.decode(whole)
    assert " there" == tokenizer.decode(whole[-size:])


# Where the continuation begins


@pytest.mark.parametrize(
    ("context", "continuation", "scored"),
    [
        ("What do bees make?", " honey", " honey"),
        ("What do bees make? ", "honey", " honey"),
        ("What do bees make?\n", "honey", "honey"),
        ("", "honey", "honey"),
        ("Zürich 🙂", "🙂", "🙂"),
    ],
)
def test_a_token_over_the_border_is_the_continuations(
    llama: HfAdapter, context: str, continuation: str, scored: str
) -> None:
    whole, size = split(llama, context, continuation)
    tokenizer = llama._open().tokenizer
    assert "<s>" + context + continuation == tokenizer.decode(whole)
    assert scored == tokenizer.decode(whole[-size:])


@given(context=phrases | st.just(""), continuation=phrases)
@quick
def test_the_scored_tokens_end_the_text_and_hold_the_whole_continuation(
    llama: HfAdapter, context: str, continuation: str
) -> None:
    whole, size = split(llama, context, continuation)
    tokenizer = llama._open().tokenizer
    assert 0 < size < len(whole)
    assert "<s>" + context + continuation == tokenizer.decode(whole)
    assert tokenizer.decode(whole[-size:]).endswith(continuation) or "\ufffd" in tokenizer.decode(whole[-size:])


def test_a_first_token_is_predicted_from_the_end_of_another_text_where_there_is_no_bos(gpt2: HfAdapter) -> None:
    whole, size = split(gpt2, "", "honey")
    assert [gpt2._open().tokenizer.eos_token_id] == whole[:-size]
    assert_close(by_hand(gpt2, whole, size), gpt2.loglikelihood([LogLikelihood("", "honey")])[0])


def test_an_empty_continuation_is_an_error_of_its_own(llama: HfAdapter) -> None:
    good, refused = llama.loglikelihood([LogLikelihood("a", " cat"), LogLikelihood("a", "")])
    assert isinstance(good, LogProb)
    assert "the continuation '' adds no tokens to its context" == str(refused)


# What fits


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_context_beyond_the_window_loses_its_beginning(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    requests = [LogLikelihood("What is honey? " * 30, " Paris"), LogLikelihood("a", " cat")]
    tokens, size = split(model, requests[0].context, requests[0].continuation)
    assert len(tokens) > WINDOW + 1
    long, short = model.loglikelihood(requests)
    assert_close(
        by_hand(model, tokens[-WINDOW - 1 :][: WINDOW + 1], size) if name == "llama" else _last(model, tokens, size),
        long,
    )
    assert_close(by_hand(model, *split(model, "a", " cat")), short)


def _last(model: HfAdapter, tokens: list[int], size: int) -> LogProb:
    """Do by hand what does not fit a model of learnt positions with the last token, which is never read."""
    import torch

    read = tokens[:-1][-WINDOW:]
    with torch.inference_mode():
        logprobs = model._open().model(input_ids=torch.tensor([read])).logits[0].log_softmax(-1)
    each = [float(logprobs[place, token]) for place, token in zip(range(-size, 0), tokens[-size:], strict=True)]
    greedy = logprobs[-size:].argmax(-1).tolist() == tokens[-size:]
    return LogProb(sum(each), tuple(each), greedy)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_continuation_is_never_cropped(name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    text = ""
    while split(model, "a", text + " honey")[1] <= WINDOW:
        text += " honey"
    fits, too_long = model.loglikelihood([LogLikelihood("a", text), LogLikelihood("a", text + " honey" * 9)])
    size = split(model, "a", text)[1]
    assert size == len(found(fits).tokens)
    assert isinstance(too_long, AdapterError)
    assert f"tokens, more than the window of {WINDOW}" in str(too_long)


def test_a_number_that_is_not_finite_is_an_error(chat_llama: Path) -> None:
    import torch

    broken = HfAdapter(str(chat_llama))
    with torch.no_grad():
        broken._open().model.lm_head.weight[5] = math.nan
    (refused,) = broken.loglikelihood([LogLikelihood("a", "b")])
    assert isinstance(refused, AdapterError)
    assert "log-probability is nan" in str(refused)


# What it costs


def test_options_of_one_token_share_a_row(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    plain = llama._open().model.forward
    requests = [LogLikelihood("Which animal barks? Answer:", letter) for letter in "ABCD"]
    expected = [by_hand(llama, *split(llama, one.context, one.continuation)) for one in requests]

    def forward(input_ids: Any, **given: Any) -> Any:
        rows.append(len(input_ids))
        return plain(input_ids=input_ids, **given)

    monkeypatch.setattr(llama._open().model, "forward", forward)
    answers = llama.loglikelihood(requests)
    assert [1] == rows
    assert 4 == len({found(answer).total for answer in answers})
    for by, answer in zip(expected, answers, strict=True):
        assert_close(by, answer)


def test_only_the_predictions_that_are_asked_for_are_made(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    head = llama._open().model.lm_head
    handle = head.register_forward_hook(lambda _module, _inputs, logits: shapes.append(tuple(logits.shape)))
    llama.loglikelihood([LogLikelihood("What is honey? " * 6, "A"), LogLikelihood("a", " honey")])
    handle.remove()
    sizes = [split(llama, "a", " honey")[1], 1]
    assert [(2, max(sizes), llama._open().vocabulary)] == shapes


def test_a_small_budget_of_tokens_changes_no_number(chat_llama: Path, llama: HfAdapter) -> None:
    small = HfAdapter(str(chat_llama), batch_tokens=1)
    requests = [LogLikelihood(question, " " + answer) for question, answer in FACTS]
    for expected, answer in zip(llama.loglikelihood(requests), small.loglikelihood(requests), strict=True):
        assert_close(found(expected), answer)


def test_rows_that_read_the_same_are_read_once() -> None:
    split = {0: ([1, 2, 3], 1), 1: ([1, 2, 4], 1), 2: ([1, 2, 3], 2), 3: ([9, 2, 3], 1)}
    rows = readings(split, None)
    assert [([1, 2], {0: [3], 1: [4], 2: [2, 3]}), ([9, 2], {3: [3]})] == [(row.tokens, row.asked) for row in rows]
    assert [2, 1] == [row.kept for row in rows]
    assert [[2]] == [row.tokens for row in readings({0: split[0], 3: split[3]}, 1)]
