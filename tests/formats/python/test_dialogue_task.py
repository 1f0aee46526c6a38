"""Lists of conversations: what is asked, how a letter is chosen, and what makes them bad task files."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.scoring.evaluate import hashes as hashes_of
from pytest_lmeval.task import Tools
from pytest_lmeval.types import Completion, Generate, LogLikelihood, LogProb, Message, Score
from tests import needs

from .conftest import TaskFolder

TALKS = """
class Talks(Task):
    eval_type = "generative"
    fetched = []

    def num_examples(self):
        return 5

    def get_example(self, index):
        self.fetched.append(index)
        return {"messages": [
            {"role": "system", "content": "Count."},
            {"role": "user", "content": f"after {index}?"},
            {"role": "assistant", "content": str(index + 1)},
        ], "specialty": "even" if index % 2 == 0 else "odd"}

    def evaluate(self, conversation, response):
        return response == conversation["messages"][-1]["content"]
"""
LETTERS = """
class Letters(Task):
    eval_type = "categorical"

    def num_examples(self):
        return 2

    def get_example(self, index):
        return {"messages": [
            {"role": "user", "content": render_mc("Which?", "ABC", ["x", "y", "z"])},
            {"role": "assistant", "content": "AC"[index]},
        ], "letters": ("A", "B", "C")}

    def evaluate(self, conversation, response):
        assert response in conversation["letters"]
        return response == conversation["messages"][-1]["content"]
"""


class Probable:
    """An adapter that has log-probabilities."""

    def loglikelihood(self, requests: list[Any]) -> list[LogProb]:
        return [LogProb(-1.0) for _ in requests]


def _scored(task: Any, text: str, place: int = 0) -> Score:
    score: Score = task.score(task.examples[place], [Completion(text)], Tools())
    return score


def _evaluating(folder: TaskFolder, returned: str) -> Any:
    return folder.task(TALKS.replace('response == conversation["messages"][-1]["content"]', returned))


# What its hashes cover


def _hashes(folder: TaskFolder, old: str, new: str) -> tuple[str, str]:
    assert old in TALKS
    task = folder.task(TALKS.replace(old, new))
    example = task.examples[0]
    return hashes_of(task, example, example.messages)


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("after {index}?", "what follows {index}?", True),
        ('{"role": "system", "content": "Count."},', "", True),
        ("self.fetched.append(index)", "self.fetched += [index]", True),
        ("str(index + 1)", "str(index + 2)", False),
        ("str(index + 1)}", '[{"type": "text", "text": str(index + 1)}]}', False),
        ('"even" if', '"pair" if', False),
        ("response == ", "response in ", False),
        ("return 5", "return 6", False),
    ],
)
def test_a_changed_question_leaves_the_scoring_hash_as_it_is(
    folder: TaskFolder, old: str, new: str, is_same: bool
) -> None:
    content, scoring = _hashes(folder, "", "")
    changed_content, changed_scoring = _hashes(folder, old, new)
    assert (True, is_same) == (content != changed_content, scoring == changed_scoring)


@pytest.mark.parametrize("more", ['{"said": {"yes"}}', '{"messages": [{"role": "user", "content": "?", "gold": 1}]}'])
def test_where_the_data_do_not_tell_it_all_the_code_that_makes_them_decides(folder: TaskFolder, more: str) -> None:
    given = f"self.fetched.append(index); more = {more}"
    answer = '], **{k: v for k, v in more.items() if k != "messages"}, "specialty"'
    source = TALKS.replace("self.fetched.append(index)", given).replace('], "specialty"', answer)
    source = source.replace('{"messages": [\n', '{"messages": [*more.get("messages", ()),\n')
    hashes = []
    for text in (source, source.replace("after {index}?", "what follows {index}?")):
        task = folder.task(text)
        hashes.append(hashes_of(task, task.examples[0], task.examples[0].messages)[1])
    assert hashes[0] != hashes[1]


# Generative


def test_a_class_becomes_a_task_with_an_example_per_conversation(folder: TaskFolder) -> None:
    task = folder.task(TALKS)
    example = task.examples[3]

    assert ["Talks", "evaluate", 5, 1.0] == [task.name, task.metric, len(task.examples), task.threshold(example)]
    assert ["ex-3", ("4",), "odd"] == [example.id, example.targets, example.category]
    assert ["after 3?", 3] == [example.prompt, example.line]
    messages = (Message("system", "Count."), Message("user", "after 3?"))
    assert (Generate(messages, "Talks", "ex-3"),) == task.requests(example, example.messages)


@pytest.mark.parametrize(
    ("returned", "value"),
    [("True", 1.0), ("False", 0.0), ("0.25", 0.25), ("1", 1.0), ("__import__('numpy').True_", 1.0)],
)
def test_what_evaluate_returns_is_the_score(folder: TaskFolder, returned: str, value: float) -> None:
    if "numpy" in returned:
        needs.installed("numpy")
    score = _scored(_evaluating(folder, returned), "text")

    assert [value, "text"] == [score.value, score.prediction]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", "Talks.evaluate returned None; expected a bool or a number"),
        ("'1'", "Talks.evaluate returned '1'; expected a bool or a number"),
    ],
)
def test_what_is_no_score_is_an_error(folder: TaskFolder, returned: str, message: str) -> None:
    with pytest.raises(ScoringError, match=message):
        _scored(_evaluating(folder, returned), "text")


def test_evaluate_cannot_change_the_conversation_for_the_next_repeat(folder: TaskFolder) -> None:
    task = _evaluating(folder, "conversation.pop('specialty') == 'even'")

    assert [1.0, 1.0] == [_scored(task, "text").value, _scored(task, "text").value]


def test_a_slice_has_the_ids_of_the_whole(folder: TaskFolder) -> None:
    task = folder.task(TALKS + "\nTASKS = [Talks(start=1, step=2)]")

    assert ["ex-1", "ex-3"] == [example.id for example in task.examples]


def test_a_task_sets_its_name_threshold_and_limits(folder: TaskFolder) -> None:
    settings = "name = 'counting'\n    threshold = 0.5\n    stop_sequences = ['\\n']\n    max_tokens = 5\n    fetched"
    task = folder.task(TALKS.replace("fetched", settings, 1))
    example = task.examples[0]
    (request,) = task.requests(example, example.messages)

    assert ["counting", 0.5] == [task.name, task.threshold(example)]
    assert [("\n",), 5] == [request.stop, request.max_tokens]


def test_any_key_of_the_conversation_can_be_the_subject(folder: TaskFolder) -> None:
    source = TALKS.replace('"specialty"', '"ward"').replace("fetched", "subject_key = 'ward'\n    fetched", 1)

    assert ["even", "odd"] == [example.category for example in folder.task(source).examples[:2]]


def test_only_the_wanted_subject_is_asked_for(folder: TaskFolder) -> None:
    assert ["ex-1", "ex-3"] == [example.id for example in folder.task(TALKS, subjects=("odd",)).examples]


def test_only_as_many_conversations_are_fetched_as_the_run_can_use(folder: TaskFolder) -> None:
    assert [0, 1] == folder.task(TALKS, limit=2).task.fetched
    assert [0, 1, 2, 3, 4] == folder.task(TALKS).task.fetched


def test_only_the_conversations_of_a_sample_are_fetched(folder: TaskFolder) -> None:
    whole = folder.task(TALKS)
    drawn = sorted(random.Random("7:Talks").sample(range(5), 2))
    sampled = folder.task(TALKS, sample=2, seed=7)

    assert drawn == sorted(sampled.task.fetched)
    assert [whole.examples[place].id for place in drawn] == [f"ex-{index}" for index in sampled.task.fetched]
    assert 5 == len(sampled.examples)


def test_a_bad_conversation_in_a_sample_is_told_and_another_drawn(folder: TaskFolder) -> None:
    bad = TALKS.replace("self.fetched.append(index)", "self.fetched.append(index)\n        assert index != 2")
    loaded = folder.load(bad, sample=4)

    assert ["item 2: AssertionError"] == [error.detail.partition(" (")[0] for error in loaded.errors]
    assert [0, 1, 3, 4] == [int(example.id[3:]) for example in loaded.tasks[0].examples]


def test_content_in_parts_is_joined(folder: TaskFolder) -> None:
    parts = '[{"type": "text", "text": "after "}, {"type": "python", "text": f"{index}?"}]'
    task = folder.task(TALKS.replace('f"after {index}?"', parts))

    assert "after 0?" == task.examples[0].messages[1].content


# Categorical


@pytest.mark.parametrize(
    ("text", "value", "prediction"),
    [("A", 1.0, "A"), ("Certainly B, not A.", 0.0, "B"), ("(A)", 1.0, "A"), ("xAx", 1.0, "A")],
)
def test_the_first_letter_is_the_answer(folder: TaskFolder, text: str, value: float, prediction: str) -> None:
    score = _scored(folder.task(LETTERS), text)

    assert [value, prediction, False] == [score.value, score.prediction, score.unparsed]


def test_no_letter_at_all_is_wrong_and_counted_apart(folder: TaskFolder) -> None:
    score = _scored(folder.task(LETTERS), "no idea")

    assert [0.0, True] == [score.value, score.unparsed]


def test_letters_are_chosen_by_their_probabilities_where_the_adapter_gives_them(folder: TaskFolder) -> None:
    task = folder.task(LETTERS)
    prepared = task.prepared(Probable())
    example = prepared.examples[0]
    requests = prepared.requests(example, example.messages)

    assert task.prepared(object()) is task
    assert all(isinstance(request, LogLikelihood) for request in requests)
    assert ["A", "B", "C"] == [request.continuation for request in requests]
    assert {example.prompt + "\n"} == {request.context for request in requests}
    assert {example.messages} == {request.messages for request in requests}


@pytest.mark.parametrize(
    ("totals", "value", "letter"),
    [([-1.0, -2.0, -3.0], 1.0, "A"), ([-5.0, -2.0, -3.0], 0.0, "B"), ([-1, -1, -2], 1.0, "A")],
)
def test_the_most_probable_letter_is_evaluated(
    folder: TaskFolder, totals: Sequence[float], value: float, letter: str
) -> None:
    task = folder.task(LETTERS).prepared(Probable())
    score = task.score(task.examples[0], [LogProb(total) for total in totals], Tools())

    assert [value, letter] == [score.value, score.prediction]
    assert dict(zip("ABC", totals, strict=True)) == score.details["logprobs"]


def test_probabilities_that_are_no_numbers_are_an_error(folder: TaskFolder) -> None:
    task = folder.task(LETTERS).prepared(Probable())

    with pytest.raises(ScoringError, match="expected numbers"):
        task.score(task.examples[0], [LogProb(float("nan"))] * 3, Tools())


def test_a_letter_that_was_chosen_and_one_that_was_written_are_not_compared(folder: TaskFolder) -> None:
    task = folder.task(LETTERS)
    prepared = task.prepared(Probable())

    assert task.scoring(task.examples[0]) != prepared.scoring(prepared.examples[0])


# Bad task files


FAULTS = {
    TALKS: [
        ("def evaluate", "def rate", "missing_required Talks.evaluate: required: eval_type, num_examples"),
        ('"generative"', '"free"', "bad_value Talks.eval_type: expected one of generative, categorical, got 'free'"),
        ("return 5", "return 0", "bad_value Talks.num_examples: expected a whole number >= 1, got 0"),
        ("return 5", "return 1 / 0", "python_error Talks.num_examples: ZeroDivisionError"),
        (
            '["content"]',
            '["content"]\n\nTASKS = [Talks(start=9)]',
            "bad_value Talks.start: none of 5 examples is in 9:None",
        ),
        ("fetched = []", "threshold = 3; fetched = []", "bad_value Talks.threshold: expected a number in [0, 1]"),
        ('return {"messages"', 'return 5, {"messages"', "bad_type Talks.get_example: item 0, and 4 more like it: expe"),
        ('"messages": [', '"message": [', "bad_type Talks.get_example.messages: item 0, and 4 more like it: expected"),
        ('"role": "assistant"', '"role": "user"', "expected a question of the user and, last, the assistant's answer"),
        ('"role": "user"', '"role": "human"', "bad_value Talks.get_example.messages[1]: item 0: expected role"),
        ("str(index + 1)", "index", "bad_type Talks.get_example.messages[2].content: item 0: expected text or parts"),
        ("fetched = []", "subject_key = 'ward'; fetched = []", "no conversation key 'ward'; there are messages, spec"),
        ('"specialty":', '"id": "same", "specialty":', "duplicate_task_id id: item 1, and 3 more like it: 'same'"),
        ('"specialty":', '"id": 1.5, "specialty":', "bad_type id: item 0, and 4 more like it: expected a non-empty"),
    ],
    LETTERS: [
        ('"letters": ("A", "B", "C")', '"x": 1', "bad_type Letters.get_example.letters: item 0, and 1 more"),
        ('("A", "B", "C")', '("A",)', "bad_value Letters.get_example.letters: item 0, and 1 more like it: expected"),
        ('"AC"[index]', '"AX"[index]', "bad_value Letters.get_example.letters: item 1: the right answer 'X' is not"),
        ('"AC"[index]', '"A"[index]', "python_error Letters.get_example: item 1: IndexError"),
    ],
}


@pytest.mark.parametrize(
    ("source", "old", "new", "message"), [(source, *row) for source, rows in FAULTS.items() for row in rows]
)
def test_a_fault_names_class_and_field(folder: TaskFolder, source: str, old: str, new: str, message: str) -> None:
    assert old in source
    error = folder.load(source.replace(old, new)).errors[0].at("task_it.py")

    assert message in error
    assert re.match(r"task_it\.py:3: ", error)
