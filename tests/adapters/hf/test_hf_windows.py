"""Many requests known together: what is written is what each of them gets alone, and what they share is read once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_lmeval.adapters.hf import HfAdapter, adapter
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Generate, LogLikelihood, LogProb, Message, Request

from .asking import completion, greedy_by_hand, one, read_by, texts
from .tiny_model import FACTS, TOOL, WINDOW

QUESTIONS = [question for question, _ in FACTS]
SHOTS = "".join(f"{question} {answer}\n" for question, answer in FACTS[:4])
quick = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
prompts = st.lists(
    st.sampled_from(
        [*QUESTIONS, *(SHOTS + question for question in QUESTIONS), "a", "Zürich 🙂", "the the the", "honey " * 100]
    ),
    min_size=1,
    max_size=16,
)


@pytest.fixture(params=["own loop", "library"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have both models write in a way: by our loop, or by the library's, which takes every model."""
    for name in ("llama", "gpt2"):
        monkeypatch.setattr(request.getfixturevalue(name), "_goes_on", request.param == "own loop")
    return str(request.param)


def in_window(model: HfAdapter, requests: Sequence[Request]) -> list[Any]:
    """Return the answers of a window, asked batch by batch as the model plans."""
    answers: dict[int, Any] = {}
    for batch in model.plan_window(requests):
        asked: list[Any] = [requests[place] for place in batch]
        ask: Any = model.loglikelihood if isinstance(asked[0], LogLikelihood) else model.generate_requests
        answers.update(zip(batch, ask(asked), strict=True))
    return [answers[place] for place in range(len(requests))]


# The same as alone


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@given(asked=prompts, rooms=st.lists(st.integers(1, 14), min_size=1), limit=st.sampled_from([1, 60, 400, 4096]))
@quick
def test_a_window_writes_what_a_plain_loop_writes_for_each_prompt(
    request: pytest.FixtureRequest, name: str, writer: str, asked: list[str], rooms: list[int], limit: int
) -> None:
    model = request.getfixturevalue(name)
    requests = [Generate(text, max_tokens=rooms[number % len(rooms)]) for number, text in enumerate(asked)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_ENOUGH_TO_WRITE", limit)
        answers = in_window(model, requests)
    for asking, answer in zip(requests, answers, strict=True):
        tokens = model._prompts.read(asking)[0]
        if len(tokens) >= WINDOW:
            assert isinstance(answer, AdapterError)
            assert f"no room for an answer; in tokens: prompt {len(tokens)}, window {WINDOW}" in str(answer)
            continue
        room = min(asking.max_tokens or 0, WINDOW - len(tokens))
        written = greedy_by_hand(model, tokens, room)
        ended = written[-1] in model._open().ends
        assert (len(written), "stop" if ended else "length") == (answer.completion_tokens, answer.finish_reason)
        assert model._prompts.text_after(tokens, written[: len(written) - ended]) == answer.text


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_prompts_of_one_token_of_the_models_length_and_over_it_are_in_one_window(
    request: pytest.FixtureRequest, name: str, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = request.getfixturevalue(name)
    monkeypatch.setattr(model._prompts, "is_chat", False)
    long = [("honey " * words).strip() for words in range(30, 200)]
    of_size = {len(model._prompts.read(Generate(text))[0]): text for text in ["", QUESTIONS[0], *long]}
    sizes = sorted(of_size)
    assert {1, WINDOW} <= {*sizes}
    requests = [Generate(of_size[size], max_tokens=9) for size in sizes]
    for asking, size, answer in zip(requests, sizes, in_window(model, requests), strict=True):
        if size >= WINDOW:
            assert isinstance(answer, AdapterError)
            continue
        tokens = model._prompts.read(asking)[0]
        written = greedy_by_hand(model, tokens, min(9, WINDOW - size))
        ended = written[-1] in model._open().ends
        assert len(written) == completion(answer).completion_tokens
        assert model._prompts.text_after(tokens, written[: len(written) - ended]) == answer.text


def test_each_text_of_a_window_ends_at_its_own_stop_strings(llama: HfAdapter, writer: str) -> None:
    stops = [("\n",), ("lemon",), (), ("nana",), ("quince", "a\nl"), ("kiwi",), ("b",)]
    requests = [Generate(QUESTIONS[7], stop=stop) for stop in stops] + [Generate(QUESTIONS[0], stop=("is",))]
    expected = ["banana", "banana\n", "banana\nlemon\nquince", "ba", "banan", "banana\nlemon\nquince", "", "Par"]
    assert expected == texts(in_window(llama, requests))


def test_sampled_repeats_of_a_window_are_drawn_as_they_are_alone(chat_llama: Path, writer: str) -> None:
    hot = HfAdapter(str(chat_llama), temperature=2.0, logprobs=True)
    hot._goes_on = writer == "own loop"
    asked = [Generate(prompt, repeat=repeat, max_tokens=8) for prompt in QUESTIONS[:4] for repeat in range(3)]
    alone = [completion(hot.generate_requests([each])[0]) for each in asked]
    assert len({answer.text for answer in alone}) > 8
    for one_by_one, answer in zip(alone, in_window(hot, asked), strict=True):
        assert replace(one_by_one, logprobs=()) == replace(answer, logprobs=())
        assert one_by_one.logprobs == pytest.approx(answer.logprobs, abs=1e-4)


def test_thoughts_and_calls_of_a_window_are_those_of_each_request(talking_qwen: Path) -> None:
    model = HfAdapter(str(talking_qwen), max_new_tokens=200)
    model.think_tags = ("<think>", "</think>")
    asked = [
        Generate((Message("user", QUESTIONS[0]),)),
        Generate((Message("user", "How is the weather in Riga?"),), tools=(TOOL,)),
        Generate((Message("user", "How is the weather in Riga and in Rome?"),), tools=(TOOL,)),
    ]
    alone = [one(model, each.prompt, tools=each.tools) for each in asked]
    assert ["A city.", "Look.", "Look twice."] == [answer.thoughts for answer in alone]
    assert [0, 1, 2] == [len(answer.tool_calls) for answer in alone]
    assert alone == in_window(model, asked)


def test_rows_that_are_done_are_left_out(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = [*range(1, 9)]
    alone = [one(llama, QUESTIONS[7], max_tokens=room) for room in rooms]
    read = read_by(llama, monkeypatch)
    assert alone == in_window(llama, [Generate(QUESTIONS[7], max_tokens=room) for room in rooms])
    assert [1, 8, 8, 8, 8, 4, 4, 2, 1] == [rows for rows, _ in read]


# What is read once


def test_worked_examples_are_read_once_for_all_batches_of_a_window(
    llama: HfAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "_ENOUGH_TO_WRITE", 150)
    monkeypatch.setattr(llama._prompts, "is_chat", False)
    requests: list[Request] = [Generate(SHOTS + question, max_tokens=4) for question in QUESTIONS]
    alone = [llama.generate_requests([each])[0] for each in requests if isinstance(each, Generate)]
    read = read_by(llama, monkeypatch)
    assert alone == in_window(llama, requests)
    shared = len(llama._prompts.plain(SHOTS))
    first = [rows * width for rows, width in read if width > 1]
    assert len(first) > 3
    assert 1 == sum(rows == 1 and width >= shared - 1 for rows, width in read)
    assert sum(first) < 3 * shared
    # And so by those who score options after the same examples.
    scored = [LogLikelihood(SHOTS + question, f" {answer}") for question, answer in FACTS[4:]]
    by_itself = [llama.loglikelihood([each])[0] for each in scored]
    for expected, found in zip(by_itself, in_window(llama, scored), strict=True):
        assert isinstance(expected, LogProb)
        assert expected.tokens == pytest.approx(found.tokens, abs=1e-4)


def test_families_of_different_beginnings_are_one_batch(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama._prompts, "is_chat", False)
    others = "".join(f"{question} {answer}\n" for question, answer in FACTS[4:8])
    requests = [Generate(begun + text, max_tokens=5) for begun in (SHOTS, others) for text in ("Bees", "a", "The sky")]
    alone = [llama.generate_requests([each])[0] for each in requests]
    read = read_by(llama, monkeypatch)
    assert alone == in_window(llama, requests)
    assert [2, 6] == [rows for rows, width in read if width > 1]


def test_what_follows_a_kept_beginning_may_begin_otherwise(llama: HfAdapter) -> None:
    luck = random.Random(0)
    windows = [
        [Generate(shots + text, max_tokens=5) for text in QUESTIONS[:3]] for shots in (SHOTS, SHOTS[:90], "", SHOTS)
    ]
    for requests in luck.sample(windows, len(windows)):
        assert [llama.generate_requests([each])[0] for each in requests] == in_window(llama, requests)


# Plans


def test_a_plan_has_every_place_once_and_errors_first(llama: HfAdapter) -> None:
    requests = [Generate(QUESTIONS[0]), Generate("honey " * 200), Generate("a"), Generate("honey " * 300)]
    plan = llama.plan_window(requests)
    assert [1, 3] == plan[0]
    assert [0, 1, 2, 3] == sorted(place for batch in plan for place in batch)
    assert [] == llama.plan_window([])


def test_a_plan_is_no_promise(llama: HfAdapter) -> None:
    requests = [Generate(question) for question in QUESTIONS]
    expected = llama.generate_requests(requests)
    llama.plan_window(requests)
    # Others are asked, one of them alone, in another order, twice.
    assert expected[::-1] == llama.generate_requests(requests[::-1])
    assert expected[3:4] * 2 == [*llama.generate_requests(requests[3:4]), *llama.generate_requests(requests[3:4])]
    llama.plan_window(requests[:2])
    assert expected == llama.generate_requests(requests)


def test_a_closed_model_plans_nothing(chat_llama: Path) -> None:
    model = HfAdapter(str(chat_llama))
    model.close()
    with pytest.raises(AdapterError, match="is closed"):
        model.plan_window([Generate("a")])


def test_the_window_is_an_option(chat_llama: Path) -> None:
    assert [512, 7] == [
        HfAdapter(str(chat_llama)).request_window,
        HfAdapter(str(chat_llama), request_window=7).request_window,
    ]
