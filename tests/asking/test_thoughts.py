"""A reasoning model's thoughts are no part of its answer, whatever family writes them and however."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.arguments import THINK_TAGS, think_tags
from pytest_lmeval.asking.ask import ask
from pytest_lmeval.loading import load_tasks
from pytest_lmeval.postprocess import split_thoughts
from pytest_lmeval.run.library import run_leaderboard
from pytest_lmeval.types import Completion, Generate, Message
from tests.tables import each_row

SEED = ("<seed:think>", "</seed:think>")
MAGISTRAL = ("[THINK]", "[/THINK]")
CHANNELS = ("analysis", "assistantfinal")


class Says:
    """Answers every request with the same."""

    name = "says"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def generate_requests(self, requests: list[Generate]) -> list[Any]:
        return [self._answer for _ in requests]


def answer_of(answer: Any, tags: tuple[str, str] | None = THINK_TAGS, prompt: Any = "?") -> Completion:
    (found,) = ask(Says(answer), [Generate(prompt)], think_tags=tags)
    assert isinstance(found, Completion)
    return found


@each_row(
    ("text", "tags", "thoughts", "answer"),
    [
        pytest.param("<think>\nA?\n</think>\n\nC", THINK_TAGS, "\nA?\n", "C", id="Qwen3"),
        pytest.param("<think>\n\n</think>\n\nC", THINK_TAGS, "\n\n", "C", id="Qwen3 without thinking"),
        pytest.param("A or C?\n</think>\n\nC", THINK_TAGS, "A or C?\n", "C", id="DeepSeek-R1, tag in the prompt"),
        pytest.param("[THINK]A?[/THINK]C", MAGISTRAL, "A?", "C", id="Magistral"),
        pytest.param("<seed:think>A?</seed:think>C", SEED, "A?", "C", id="Seed-OSS"),
        pytest.param("analysisA?assistantfinalC", CHANNELS, "A?", "C", id="gpt-oss without its special tokens"),
        pytest.param(" \n<think>A?</think> C", THINK_TAGS, "A?", " C", id="blanks before"),
        pytest.param("<think>A?</think><think>B?</think>C", THINK_TAGS, "A?\nB?", "C", id="two thoughts"),
        pytest.param(
            "<think>A<think>B</think>?</think>C", THINK_TAGS, "A<think>B\n?", "C", id="a thought in a thought"
        ),
        pytest.param("<think>a tag </think> ends</think>C", THINK_TAGS, "a tag \n ends", "C", id="a tag told of"),
        pytest.param(
            "A?</think><think>B?</think>C", THINK_TAGS, "A?\nB?", "C", id="one opened in the prompt, then one"
        ),
        pytest.param("<think>A?", THINK_TAGS, "A?", "", id="a thought that does not end"),
        pytest.param("<think>A?</think>\n ", THINK_TAGS, "A?", "", id="no answer after it"),
        pytest.param(
            "<think>```\n<think>\n```</think>C", THINK_TAGS, "```\n<think>\n```", "C", id="a tag in a thought"
        ),
    ],
)
def test_thoughts_are_taken_off_the_text(text: str, tags: tuple[str, str], thoughts: str, answer: str) -> None:
    found = answer_of(text, tags)
    assert (thoughts, answer) == (found.thoughts, found.text)
    assert found.is_cut_off == (not answer)


@each_row(
    "text",
    [
        "C",
        "",
        "The tags are `<think>` and `</think>`.",
        "```html\n<think>no</think>\n```",
        "I <think> so",
        "[THINK]A?[/THINK]C",
    ],
)
def test_a_text_without_thoughts_at_its_beginning_stays_as_it_is(text: str) -> None:
    assert (text, "") == (answer_of(text).text, answer_of(text).thoughts)


@each_row(
    ("field", "text", "thoughts", "answer"),
    [
        ("A?", "<think>A?</think>C", "A?", "C"),
        ("A?", "<think>B?</think>C", "A?\nB?", "C"),
        ("A?", "\n</think>\nC", "A?", "C"),
        ("A?", "<think>\n</think>C", "A?", "C"),
        ("A?", "C", "A?", "C"),
        ("A?", "The tag is <think>.", "A?", "The tag is <think>."),
        ("A?", "<think>B?", "A?\nB?", ""),
    ],
)
def test_tags_are_taken_off_the_text_although_a_field_has_thoughts(
    field: str, text: str, thoughts: str, answer: str
) -> None:
    found = answer_of(Completion(text, thoughts=field))
    assert (thoughts, answer) == (found.thoughts, found.text)


def test_what_an_adapter_calls_thoughts_is_believed() -> None:
    prompt = (Message("user", "?"), Message("assistant", "<think>\n"))
    assert ("A?", "C") == ((found := answer_of(Completion("C", thoughts="A?"), prompt=prompt)).thoughts, found.text)
    blank = answer_of(Completion("\n\n", thoughts="A?"))
    assert ("", True) == (blank.text, blank.is_cut_off)


def test_an_answer_to_an_opened_thought_has_no_answer_before_its_end() -> None:
    prompt = (Message("user", "?"), Message("assistant", "<think>\n"))
    assert ("A?", "") == ((found := answer_of("A?", prompt=prompt)).thoughts, found.text)
    assert ("A?", "C") == ((found := answer_of("A?</think>C", prompt=prompt)).thoughts, found.text)


def test_the_probabilities_of_thoughts_are_not_taken_for_those_of_the_answer() -> None:
    assert () == answer_of(Completion("<think>A?</think>C", logprobs=(-1.0, -2.0))).logprobs


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n", "```"]), max_size=12).map("".join))
def test_an_answer_never_begins_with_thoughts_and_nothing_is_made_up(text: str) -> None:
    found = answer_of(text)
    assert not found.text.lstrip().startswith("<think>")
    assert text.endswith(found.text)
    again = answer_of(found)
    assert (again.text, again.thoughts) == (found.text, found.thoughts)


def test_five_megabytes_of_thoughts_are_taken_off_in_no_time() -> None:
    started = time.thread_time()
    for text in (
        "<think>" + "a " * 2_500_000 + "</think>C",
        " " * 5_000_000 + "C",
        "<think> " * 600_000,
        "</think>" * 600_000,
        "<think></think>\n" * 300_000,
    ):
        split_thoughts(text, THINK_TAGS)
    # A look through a text for each of its tags would take minutes; this takes a second, more on a busy machine.
    assert time.thread_time() - started < 20


def test_an_adapter_that_wants_to_know_the_tags_is_told(tmp_path: Path) -> None:
    adapter = Says("")
    adapter.think_tags = None  # type: ignore[attr-defined]  # an attribute that the run sets, where there is one
    (tmp_path / "a.jsonl").write_text('{"id": "a", "prompt": "?", "targets": ["!"], "metric": "exact_match"}\n')
    run_leaderboard(load_tasks(tmp_path), adapter, think_tags=SEED)
    # An attribute that the run sets, where there is one.
    assert adapter.think_tags == SEED  # type: ignore[attr-defined]


@each_row("text", ["", "<think>", "<think>,", ",</think>", "a,a", "a,b,c", "None"])
def test_tags_that_are_no_pair_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected OPEN,CLOSE, such as <think>,</think>, or none"):
        think_tags(text)
