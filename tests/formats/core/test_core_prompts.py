"""What a model is given for a CORE record, held against the template that the format was published with."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.formats.core.task import Record, few_shots, render_record
from tests.tables import each_row

words = st.text(st.sampled_from("ab \n"), min_size=1, max_size=8)


@given(words, words, st.sampled_from([" ", "\n", ": "]))
def test_a_text_to_go_on_from_ends_without_blanks(context: str, continuation: str, delimiter: str) -> None:
    record = Record((context,), (continuation,))
    (before,), (after,) = render_record(record, "language_modeling", delimiter, [])
    assert before == before.rstrip()
    assert context.strip() + delimiter + continuation == before + after


def test_a_schemas_prompts_are_cut_ahead_of_the_words_that_end_them_alike() -> None:
    record = Record(("Ann met the old man", "Bob met the old man"), ("here.",))
    contexts, continuations = render_record(record, "schema", " ", [])
    assert (("Ann", "Bob"), (" met the old man here.",) * 2) == (contexts, continuations)


def test_a_schemas_prompts_are_cut_between_words() -> None:
    record = Record(("ask the councilmen", "ask the women"), ("feared",))
    contexts, continuations = render_record(record, "schema", " ", [])
    assert ("ask the", "ask the") == contexts
    assert (" councilmen feared", " women feared") == continuations


def test_the_first_word_stays_before_what_is_asked_for() -> None:
    contexts, continuations = render_record(Record(("He gave it up", "She gave it up"), ("too.",)), "schema", " ", [])
    assert (("He", "She"), (" gave it up too.",) * 2) == (contexts, continuations)


@each_row("contexts", [("the cup", "the floor"), ("a b", "x a b"), ("b", "a"), (" b", "c b"), ("ab", "b")])
def test_a_schema_always_keeps_a_context(contexts: tuple[str, ...]) -> None:
    cut, continuations = render_record(Record(contexts, ("c",)), "schema", " ", [])
    assert all(cut)
    assert [f"{context} c" for context in contexts] == [a + b for a, b in zip(cut, continuations, strict=True)]


@given(st.integers(2, 40), st.data())
def test_few_shots_are_drawn_as_from_a_list_of_the_others(count: int, data: st.DataObject) -> None:
    index, shots = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    records = [Record((str(number),), ("a",)) for number in range(count)]
    others = [record for number, record in enumerate(records) if number != index]
    expected = random.Random(1234 + index).sample(others, shots)
    assert expected == few_shots(records, index, shots)


def test_more_few_shots_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValueError):
        few_shots([Record(("a",), ("b",))], 0, 1)
