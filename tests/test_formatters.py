"""Conversations as one text: the formats are those of the published templates."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.errors import AdapterError
from pytest_lmeval.formatters import FORMATTERS, chatml, concatenation, from_tokenizer, joined, llama3, opening
from pytest_lmeval.types import Message
from tests.tables import each_row

TALK = (Message("system", "Be brief."), Message("user", "2 + 2?"), Message("assistant", "4"), Message("user", "3 + 3?"))
CUED = (*TALK, Message("assistant", "Answer:"))
# The templates as models publish them, without what a plain conversation does not reach.
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ '<|begin_of_text|>' }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"


class Tokenizer:
    """Applies a template as a tokenizer does: an unfinished turn is cut off behind its last word."""

    def __init__(self, template: str) -> None:
        environment = jinja2.Environment()
        environment.globals["raise_exception"] = self._refuse
        self._template = environment.from_string(template)

    @staticmethod
    def _refuse(text: str) -> None:
        raise jinja2.TemplateError(text)

    def apply_chat_template(
        self, turns: list[Any], tokenize: bool, add_generation_prompt: bool, continue_final_message: bool
    ) -> str:
        text = self._template.render(messages=turns, add_generation_prompt=add_generation_prompt)
        if not continue_final_message:
            return text
        words = turns[-1]["content"].strip()
        return text[: text.rindex(words) + len(words)]


WORDS = st.text(st.sampled_from("abc .\n"), min_size=1).map(str.strip).filter(bool)
TALKS = st.builds(
    lambda system, texts, cue: [
        *([Message("system", system)] if system else []),
        *[Message("user" if place % 2 == 0 else "assistant", text) for place, text in enumerate(texts)],
        *([Message("assistant", cue)] if cue and len(texts) % 2 else []),
    ],
    st.none() | WORDS,
    st.lists(WORDS, min_size=1, max_size=5),
    st.none() | WORDS,
)


@given(TALKS)
def test_chatml_is_what_its_template_gives(talk: list[Message]) -> None:
    assert from_tokenizer(Tokenizer(CHATML))(talk) == chatml(talk)


@given(TALKS)
def test_llama3_is_what_its_template_gives(talk: list[Message]) -> None:
    assert from_tokenizer(Tokenizer(LLAMA3))(talk) == llama3(talk)


def test_concatenation_keeps_an_answer_with_its_question() -> None:
    assert "Be brief.\n\n2 + 2?\n4\n\n3 + 3?" == concatenation(TALK)
    assert "Be brief.\n\n2 + 2?\n4\n\n3 + 3?\nAnswer:" == concatenation(CUED)
    assert "" == concatenation(())


def test_joined_contents_are_those_of_eval_framework() -> None:
    """The texts that ``ConcatFormatter`` makes of these messages."""
    talk = (
        Message("system", "Be brief."),
        Message("user", "Q: a\nA:"),
        Message("assistant", " b"),
        Message("user", " c\n"),
    )
    assert "Be brief.\n\nQ: a\nA: b\n\nc" == joined(talk)
    assert "Be brief.\n\nQ: a\nA: b\n\n c\nA:" == joined((*talk, Message("assistant", "A: ")))


def test_an_opening_ends_where_the_next_word_of_the_assistant_stands() -> None:
    assert concatenation(TALK) + "\n" == opening(TALK)
    assert concatenation(CUED) == opening(CUED)


@each_row("name", FORMATTERS)
def test_a_cue_is_the_end_of_the_text(name: str) -> None:
    assert FORMATTERS[name](CUED).endswith("Answer:")


@pytest.mark.parametrize("name", FORMATTERS)
@given(TALKS)
def test_every_content_is_in_the_text_in_order(name: str, talk: list[Message]) -> None:
    text = FORMATTERS[name](talk)
    places, start = [], 0
    for message in talk:
        start = text.index(message.content, start) + len(message.content)
        places.append(start)

    assert all(first < second for first, second in pairwise(places))


def test_a_template_that_refuses_a_system_message_is_an_error_that_names_the_roles() -> None:
    with pytest.raises(AdapterError, match=r"refuses a conversation of system, user.*System role not supported"):
        from_tokenizer(Tokenizer(NO_SYSTEM))(TALK[:2])
