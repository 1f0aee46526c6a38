"""What the model writes: the same in any batch, until a stop, within its room, by its own luck."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter
from pytest_lmeval.adapters.hf.generation import _Text, draw
from pytest_lmeval.errors import AdapterError, UsageError
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Message

from .asking import completion, greedy_by_hand, one, read_by, texts
from .tiny_model import FACTS, SYSTEM, WINDOW

QUESTIONS = [question for question, _ in FACTS]
ANSWERS = [answer for _, answer in FACTS]
# Nothing the models were trained on: they go on in some way, up to their limit or to an early end.
ODD = ["", "a", "Zürich 🙂", "the the the", "What is the moon?", "x = [1, 2, 3]\n", "Bees make honey and people eat it"]


# Greedy


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_it_answers_what_it_was_taught(model: str, request: pytest.FixtureRequest) -> None:
    answers = request.getfixturevalue(model).generate_requests([Generate(question) for question in QUESTIONS])
    # Without a chat template the text goes on where the question ended: with a blank.
    blank = "" if model == "llama" else " "
    assert [blank + answer for answer in ANSWERS] == texts(answers)
    assert {"stop"} == {completion(answer).finish_reason for answer in answers}


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_a_padded_batch_writes_what_a_plain_loop_does(model: str, request: pytest.FixtureRequest) -> None:
    adapter = request.getfixturevalue(model)
    asked = [Generate(prompt, max_tokens=10) for prompt in [*QUESTIONS, *ODD]]
    for asking, answer in zip(asked, adapter.generate_requests(asked), strict=True):
        prompt = adapter._prompts.read(asking)[0]
        written = greedy_by_hand(adapter, prompt, 10)
        ended = written[-1] in adapter._open().ends
        whole = adapter._prompts.decode(prompt + written)
        expected = Completion(
            whole[len(adapter._prompts.decode(prompt)) :],
            finish_reason="stop" if ended else "length",
            prompt_tokens=len(prompt),
            completion_tokens=len(written),
        )
        assert expected == answer


def test_the_folders_advice_on_sampling_is_not_taken(chat_llama: Path, llama: HfAdapter) -> None:
    advice = json.loads((chat_llama / "generation_config.json").read_text())
    assert (True, 5.0) == (advice["do_sample"], advice["repetition_penalty"])
    asked = [Generate(question) for question in QUESTIONS]
    assert ANSWERS == texts(llama.generate_requests(asked)) == texts(llama.generate_requests(asked))


def test_a_small_budget_of_tokens_makes_more_batches_and_the_same_answers(
    chat_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HfAdapter(str(chat_llama), batch_tokens=100, max_new_tokens=20)
    sizes = read_by(model, monkeypatch)
    assert ANSWERS == texts(model.generate_requests([Generate(question) for question in QUESTIONS]))
    assert len([rows for rows, width in sizes if width > 1]) > 3
    assert all(rows * (width + 20) <= 100 or rows == 1 for rows, width in sizes if width > 1)


# Where it ends


def test_a_request_has_its_own_room(llama: HfAdapter) -> None:
    asked = [Generate(QUESTIONS[8], max_tokens=count) for count in (1, 3, 50)]
    short, medium, whole = map(completion, llama.generate_requests(asked))
    assert [1, 3] == [short.completion_tokens, medium.completion_tokens]
    assert ["length", "length", "stop"] == [answer.finish_reason for answer in (short, medium, whole)]
    assert whole.text == "William Shakespeare"
    assert whole.text.startswith(medium.text)
    assert medium.text.startswith(short.text)
    assert len(short.text) < len(medium.text) < len(whole.text)


def test_max_new_tokens_is_for_requests_without_a_limit(chat_llama: Path) -> None:
    model = HfAdapter(str(chat_llama), max_new_tokens=2)
    free, limited = map(
        completion, model.generate_requests([Generate(QUESTIONS[8]), Generate(QUESTIONS[8], max_tokens=4)])
    )
    assert [2, 4] == [free.completion_tokens, limited.completion_tokens]


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (("\n",), "banana"),
        (("quince", "lemon"), "banana\n"),
        (("kiwi", "\nq"), "banana\nlemon"),
    ],
)
def test_a_text_ends_before_its_first_stop_string(llama: HfAdapter, stop: tuple[str, ...], text: str) -> None:
    answer = one(llama, QUESTIONS[7], stop=stop)
    assert (text, "stop") == (answer.text, answer.finish_reason)


def test_a_stop_string_ends_the_answer_and_not_the_thoughts(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama._prompts, "think_tags", ("A", "barks,"))
    answer = one(llama, QUESTIONS[2], stop=("do",))
    assert (" dog ", " a cat ", "stop") == (answer.thoughts, answer.text, answer.finish_reason)


def test_nothing_is_written_beyond_a_stop_string(llama: HfAdapter) -> None:
    whole = one(llama, QUESTIONS[7])
    stopped = one(llama, QUESTIONS[7], stop=("\n",))
    assert stopped.completion_tokens is not None
    assert whole.completion_tokens is not None
    assert 0 < stopped.completion_tokens < whole.completion_tokens - 2


@pytest.mark.parametrize("model", ["llama", "gpt2"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_a_stop_string_is_found_wherever_its_tokens_begin(
    model: str, size: int, request: pytest.FixtureRequest
) -> None:
    adapter = request.getfixturevalue(model)
    whole = one(adapter, QUESTIONS[2]).text
    stops = [whole[place : place + size] for place in range(len(whole) - size + 1)]
    answers = adapter.generate_requests([Generate(QUESTIONS[2], stop=(stop,)) for stop in stops])
    assert [whole[: whole.index(stop)] for stop in stops] == texts(answers)
    counts = [completion(answer).completion_tokens or 0 for answer in answers]
    # The end token is not written any more; a short piece may occur earlier than where it was taken from.
    assert max(counts) < (one(adapter, QUESTIONS[2]).completion_tokens or 0)
    assert counts == sorted(counts) or size < 5


# What fits


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_a_prompt_that_fills_the_window_is_an_error_of_its_own(model: str, request: pytest.FixtureRequest) -> None:
    adapter = request.getfixturevalue(model)
    asked = [Generate(QUESTIONS[0]), Generate("honey " * 100), Generate(QUESTIONS[1])]
    first, refused, last = adapter.generate_requests(asked)
    assert ["Paris", "Rome"] == [completion(answer).text.strip() for answer in (first, last)]
    assert isinstance(refused, AdapterError)
    assert f"no room for an answer; in tokens: prompt {len(adapter._prompts.read(asked[1])[0])}, window 96" in str(
        refused
    )


def test_a_row_that_is_done_is_never_carried_out_of_the_window(plain_gpt2: Path) -> None:
    # Learnt positions end with the window, and one step beyond it raises; here no row ends by itself.
    model = HfAdapter(str(plain_gpt2))
    model._loaded = replace(model._open(), ends=())
    model._open().model.generation_config.eos_token_id = None
    long = Generate("honey " * 43)
    room = WINDOW - len(model._prompts.read(long)[0])
    assert 0 < room < 20
    answers = model.generate_requests([long, Generate("the moon", max_tokens=80), long])
    assert [room, 80, room] == [completion(answer).completion_tokens for answer in answers]
    assert {"length"} == {completion(answer).finish_reason for answer in answers}


def test_no_room_is_no_answer(llama: HfAdapter) -> None:
    (refused,) = llama.generate_requests([Generate("a", max_tokens=0)])
    assert "no room for an answer" in str(refused)
    assert "max_tokens 0" in str(refused)


def test_an_empty_prompt_is_continued_from_the_token_that_begins_or_ends_texts(gpt2: HfAdapter) -> None:
    assert [gpt2._open().tokenizer.eos_token_id] == gpt2._prompts.read(Generate(""))[0]
    assert 1 == one(gpt2, "", max_tokens=3).prompt_tokens


def test_no_requests_have_no_answers(llama: HfAdapter) -> None:
    assert [] == llama.generate_requests([])
    assert [] == llama.loglikelihood([])


def with_memory_for(rows: int, model: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let passes of more rows fail for want of memory; return a list that fills with the rows of each pass."""
    import torch

    tried: list[int] = []
    plain = model._open().model.forward

    def forward(input_ids: Any, **given: Any) -> Any:
        tried.append(len(input_ids))
        if len(input_ids) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return plain(input_ids=input_ids, **given)

    monkeypatch.setattr(model._open().model, "forward", forward)
    return tried


def test_a_batch_that_is_too_large_for_the_memory_is_asked_in_parts_and_so_are_those_after_it(
    chat_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HfAdapter(str(chat_llama), batch_tokens=240, max_new_tokens=20)
    tried = with_memory_for(2, model, monkeypatch)
    asked = [Generate(question) for question in QUESTIONS]
    assert ANSWERS == texts(model.generate_requests(asked))
    assert max(tried) > 2
    del tried[:]
    assert ANSWERS == texts(model.generate_requests(asked))
    assert max(tried) <= 2
    options = [LogLikelihood(QUESTIONS[0], f" {answer}") for answer in ANSWERS]
    assert all(isinstance(answer, LogProb) for answer in model.loglikelihood(options))


def test_a_request_that_is_too_large_for_the_memory_by_itself_is_an_error_with_its_size(
    chat_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = HfAdapter(str(chat_llama), max_new_tokens=20)
    with_memory_for(0, model, monkeypatch)
    for (error,) in (model.generate_requests([Generate("Hi")]), model.loglikelihood([LogLikelihood("Hi", " there")])):
        assert "one request is too large for the device's memory (" in str(error)
        assert ": CUDA out of memory; lower max_tokens" in str(error)


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_is_being_written_ends_when_the_model_is_closed(
    chat_llama: Path, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    model = HfAdapter(str(chat_llama), max_new_tokens=80)
    model._goes_on, begun, steps = goes_on, threading.Event(), list[int]()
    monkeypatch.setattr(model, "_loaded", replace(model._open(), ends=()))
    model._open().model.generation_config.eos_token_id = None

    def step(*_: object) -> None:
        begun.set()
        steps.append(1)
        time.sleep(0.02)

    model._open().model.register_forward_pre_hook(step)
    raised: list[str] = []

    def ask() -> None:
        try:
            model.generate_requests([Generate("the the the")])
        except AdapterError as error:
            raised.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    assert begun.wait(60)
    model.close()
    asking.join(60)
    assert (1, True) == (len(raised), "closed" in raised[0])
    assert len(steps) < 80
    with pytest.raises(AdapterError, match="is closed"):
        model.generate_requests([Generate("a")])


# What it says about its tokens


@pytest.mark.parametrize("temperature", [0, 2.0])
def test_logprobs_are_the_models_own_of_every_token_written(
    chat_llama: Path, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    model = HfAdapter(str(chat_llama), logprobs=True, temperature=temperature, seed=5)
    loaded = model._open()
    asked = [Generate(prompt, max_tokens=9) for prompt in (QUESTIONS[0], QUESTIONS[8], "a", ODD[4])]
    written: list[list[int]] = []
    plain = _Text.completion

    def complete(text: _Text) -> Completion:
        written.append([*text.prompt.tokens, *text._tokens])
        return plain(text)

    monkeypatch.setattr(_Text, "completion", complete)
    for asking, answer in zip(asked, map(completion, model.generate_requests(asked)), strict=True):
        prompt = model._prompts.read(asking)[0]
        (row,) = [row for row in written if row[: len(prompt)] == prompt]
        with torch.inference_mode():
            logprobs = loaded.model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
        places = range(len(prompt), len(prompt) + (answer.completion_tokens or 0))
        expected = [float(logprobs[place - 1, row[place]]) for place in places]
        assert expected == pytest.approx(list(answer.logprobs), abs=1e-4)
        assert all(value <= 0 for value in answer.logprobs)


def test_greedy_logprobs_sum_to_the_loglikelihood_of_the_answer(plain_gpt2: Path) -> None:
    model = HfAdapter(str(plain_gpt2), logprobs=True)
    answer = one(model, QUESTIONS[5])
    (likely,) = model.loglikelihood([LogLikelihood(QUESTIONS[5], answer.text)])
    assert isinstance(likely, LogProb)
    assert list(likely.tokens) == pytest.approx(list(answer.logprobs[:-1]), abs=1e-4)


# Sampling


def test_sampling_is_the_same_for_a_seed_and_another_for_each_repeat(chat_llama: Path) -> None:
    hot = HfAdapter(str(chat_llama), temperature=3.0, seed=1)
    asked = [Generate(QUESTIONS[8], repeat=repeat, max_tokens=12) for repeat in range(6)]
    first = texts(hot.generate_requests(asked))
    assert len(set(first)) > 3
    assert first == texts(HfAdapter(str(chat_llama), temperature=3.0, seed=1).generate_requests(asked))
    assert first[2:] == texts(HfAdapter(str(chat_llama), temperature=3.0, seed=3).generate_requests(asked[:4]))


def test_different_prompts_have_different_luck(chat_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hot = HfAdapter(str(chat_llama), temperature=1.0)
    luck = {hot._prompted(hot._open(), 0, Generate(question)).seed for question in QUESTIONS}
    assert len(QUESTIONS) == len(luck)


def test_sampling_leaves_the_random_state_of_others_alone(libraries: Any, chat_llama: Path) -> None:
    before, python = libraries.random.get_rng_state(), random.getstate()
    one(HfAdapter(str(chat_llama), temperature=1.0), QUESTIONS[0])
    assert libraries.equal(before, libraries.random.get_rng_state())
    assert python == random.getstate()


def test_a_tiny_top_p_leaves_only_the_greedy_answer(chat_llama: Path) -> None:
    narrow = HfAdapter(str(chat_llama), temperature=3.0, top_p=1e-6)
    assert ANSWERS == texts(narrow.generate_requests([Generate(question) for question in QUESTIONS]))


@pytest.mark.parametrize(
    ("temperature", "top_p", "shares"),
    [
        (1.0, 1.0, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 0.7, [0.0, 4 / 7, 0.0, 3 / 7]),
        (1.0, 0.71, [0.0, 4 / 9, 2 / 9, 3 / 9]),
        (1.0, 0.4, [0.0, 1.0, 0.0, 0.0]),
        (0.5, 1.0, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
    ],
)
def test_tokens_are_drawn_by_their_share_of_the_nucleus(
    libraries: Any, temperature: float, top_p: float, shares: list[float]
) -> None:
    count = 3600
    scores = libraries.tensor([0.1, 0.4, 0.2, 0.3], dtype=libraries.float64).log().repeat(count, 1)
    uniform = (libraries.arange(count)[:, None] + 0.5) / count
    drawn = Counter(draw(scores, temperature, top_p - 1e-6 if top_p < 1 else top_p, uniform).squeeze(-1).tolist())
    assert [share * count for share in shares] == pytest.approx([drawn[token] for token in range(4)], abs=2)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-24])
@pytest.mark.parametrize("top_p", [1e-9, 0.5, 1.0])
def test_a_token_without_any_probability_is_never_drawn(libraries: Any, uniform: float, top_p: float) -> None:
    scores = libraries.tensor([[-libraries.inf, 1.0, -libraries.inf, 1.0]])
    assert draw(scores, 1.0, top_p, libraries.tensor([[uniform]])).item() in (1, 3)


# Conversations


def test_a_text_becomes_one_user_message_where_there_is_a_template(llama: HfAdapter) -> None:
    assert one(llama, QUESTIONS[0]) == one(llama, (Message("user", QUESTIONS[0]),))
    rendered = llama._prompts.read(Generate("Hi"))[0]
    assert "<s><|user|>Hi<|end|><|assistant|>" == llama._open().tokenizer.decode(rendered)


def test_chat_false_asks_for_the_text_as_it_is(chat_llama: Path) -> None:
    plain = HfAdapter(str(chat_llama), chat=False)
    assert "<s>Hi" == plain._open().tokenizer.decode(plain._prompts.read(Generate("Hi"))[0])
    assert " Paris" == one(plain, QUESTIONS[0]).text
    talk = (Message("system", "A"), Message("user", "B"))
    assert "<s>A\n\nB" == plain._open().tokenizer.decode(plain._prompts.read(Generate(talk))[0])


def test_the_system_option_heads_a_conversation_without_a_system_message(chat_llama: Path) -> None:
    loud = HfAdapter(str(chat_llama), system=SYSTEM)
    assert ["PARIS", "ROME"] == texts(loud.generate_requests([Generate(question) for question in QUESTIONS[:2]]))
    talk = Generate((Message("system", "Mine."), Message("user", "Hi")))
    assert "<s><|system|>Mine.<|end|><|user|>Hi<|end|><|assistant|>" == loud._open().tokenizer.decode(
        loud._prompts.read(talk)[0]
    )


def test_a_conversation_that_ends_with_the_assistant_is_continued(llama: HfAdapter) -> None:
    begun = (Message("user", QUESTIONS[8]), Message("assistant", "William"))
    assert " Shakespeare" == one(llama, begun).text


def test_a_template_can_be_given_arguments(chat_llama: Path, tmp_path: Path) -> None:
    model = HfAdapter(str(chat_llama), chat_template_kwargs={"bos_token": "</s>"})
    assert model._open().tokenizer.decode(model._prompts.read(Generate("Hi"))[0]).startswith("</s><|user|>Hi")


def test_a_conversation_the_template_refuses_is_an_error_of_its_own(llama: HfAdapter) -> None:
    odd = Generate((Message("user", "Hi"), Message("tool", "42")))
    refused, answer = llama.generate_requests([odd, Generate(QUESTIONS[0])])
    assert "Paris" == completion(answer).text
    assert "the chat template refuses a conversation of user, tool: unknown role tool" == str(refused)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chat": True}, "option chat is true, but the tokenizer has no chat template"),
        ({"system": "Be brief."}, "options system and chat_template_kwargs need a chat template"),
        ({"chat_template_kwargs": {"a": 1}}, "options system and chat_template_kwargs need a chat template"),
    ],
)
def test_chatting_without_a_template_is_refused(plain_gpt2: Path, options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        HfAdapter(str(plain_gpt2), **options)


def test_on_a_gpu_it_answers_the_same(libraries: Any, chat_llama: Path) -> None:
    if not libraries.cuda.is_available():
        pytest.skip("needs a GPU")
    model = HfAdapter(str(chat_llama), device="cuda", dtype="float32")
    assert ANSWERS == texts(model.generate_requests([Generate(question) for question in QUESTIONS]))
    model.close()
