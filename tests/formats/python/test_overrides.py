"""What a class overrides of eval-framework's base: called with the meaning that it has there, or refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pytest_lmeval.data import hub, local
from pytest_lmeval.data.splits import Splits
from pytest_lmeval.formatters import joined
from pytest_lmeval.tasks.base import NOT_CALLED

from .conftest import ROWS, TaskFolder, changed_quiz


def _asked(task: Any) -> list[str]:
    return [joined(example.messages) for example in task.examples]


# What is called


@pytest.mark.parametrize(
    "added",
    [
        """
        def _load_dataset(self, subject):
            self.dataset = {split: [{"q": "1 + 1", "a": "2"}] for split in ("train", "test")}
        """,
        """
        def iterate_samples(self, num_samples=None):
            yield Sample(id=0, subject="", item={}, messages=[Message("user", "1 + 1")], ground_truth="2",
                         possible_completions=None)
        """,
    ],
    ids=["loads", "iterates"],
)
def test_a_class_with_items_of_its_own_names_no_data_set(folder: TaskFolder, added: str) -> None:
    task = folder.quiz({'    DATASET_PATH = "quiz.jsonl"\n': ""}, added)

    assert (1, "") == (len(task.examples), task.dataset["path"])


def test_it_loads_each_subject_by_the_value_that_the_class_lists(folder: TaskFolder) -> None:
    folder.data("places/de/test.jsonl", [{**ROWS[0], "topic": "north"}, {**ROWS[1], "topic": "south"}])
    task = folder.quiz(
        {'"quiz.jsonl"': '"places"', "METRICS =": 'SUBJECTS = [("de", "south"), ("de", "north")]\n    METRICS ='},
        """
        def _load_dataset(self, subject):
            language, topic = subject
            loaded = self._load_hf_dataset(path=self.DATASET_PATH, name=language)
            self.dataset = self._shuffle_splits(hf_dataset=loaded.filter(lambda row: row["topic"] == topic))

        def _get_cue_text(self, item):
            return item["subject"][1]
        """,
    )

    assert ["Q: question 1south", "Q: question 0north"] == _asked(task)
    assert [("('de', 'south')-0", "('de', 'south')"), ("('de', 'north')-0", "('de', 'north')")] == [
        (example.id, example.category) for example in task.examples
    ]


def test_a_class_that_shuffles_while_it_loads_has_the_order_of_its_generator(folder: TaskFolder) -> None:
    task = folder.quiz(
        added="""
        def _shuffle_splits(self, hf_dataset):
            rows = list(hf_dataset["test"])
            self.rnd.shuffle(rows)
            return {"test": rows}
        """
    )
    rows = [f"Q: {row['q']}" for row in ROWS]
    random.Random(42).shuffle(rows)

    assert rows == _asked(task)


def test_few_shots_of_the_items_own_split_are_drawn_as_eval_framework_draws_them(folder: TaskFolder) -> None:
    folder.data("shots/test.jsonl", ROWS)
    task = folder.quiz({'"quiz.jsonl"': '"shots"', '"train"': '"test"'}, num_fewshot=3)

    for place, example in enumerate(task.examples):
        drawn = random.Random(1234 + place).sample([row["q"] for row in ROWS], 4)
        kept = [question for question in drawn if question != ROWS[place]["q"]][:3]
        *shots, _ = [message.content for message in example.messages if message.role == "user"]
        assert [f"Q: {question}" for question in kept] == shots


def test_a_class_may_ask_in_several_messages(folder: TaskFolder) -> None:
    task = folder.quiz(
        added="""
        def _get_instruction_messages(self, item):
            return [Message("user", "Read this."), Message("user", item["q"])]
        """
    )

    assert [("user", "Read this."), ("user", "question 0")] == [
        (message.role, message.content) for message in task.examples[0].messages
    ]


def test_a_class_may_iterate_over_its_samples_itself(folder: TaskFolder) -> None:
    task = folder.quiz(
        added="""
        def iterate_samples(self, num_samples=None):
            for sample in super().iterate_samples(num_samples):
                if sample.ground_truth != "answer 1":
                    yield sample
        """
    )

    assert ["ex-0", "ex-2", "ex-3", "ex-4", "ex-5"] == [example.id for example in task.examples]


def test_a_suffix_stands_behind_the_question_alone(folder: TaskFolder) -> None:
    own = "def __init__(self, num_fewshot=1):\n    super().__init__(num_fewshot)\n    self.user_prompt_suffix = ' Now!'"
    *shots, question = (message.content for message in folder.quiz(added=own).examples[0].messages)

    assert "Q: question 0 Now!" == question
    assert not any("Now!" in shot for shot in shots)


def test_a_lock_file_beside_the_task_file_pins_data_of_the_hub(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions: list[str | None] = []

    def open_splits(path: str, subjects: list[str], revision: str | None) -> dict[str, Splits]:
        revisions.append(revision)
        return {"": local.read(folder.path / "quiz.jsonl")}

    monkeypatch.setattr(hub, "open_splits", open_splits)
    changed = {'"quiz.jsonl"': '"owner/quiz"', "METRICS =": 'REVISION_LOCKFILE = "lock.json"\n    METRICS ='}

    assert "bad_value Quiz.REVISION_LOCKFILE: lock.json beside the task file" in folder.quiz_fault(changed)
    folder.write("lock.json", json.dumps({"owner/other": "abc"}))
    assert "lock.json has no revision of 'owner/quiz'" in folder.quiz_fault(changed)
    folder.write("lock.json", json.dumps({"owner/quiz": "abc"}))
    assert "Q: question 0" == _asked(folder.quiz(changed))[0]
    assert ["abc"] == revisions


# What is refused


@pytest.mark.parametrize("name", NOT_CALLED)
def test_a_member_that_no_run_calls_is_refused_with_what_to_write_instead(folder: TaskFolder, name: str) -> None:
    expected = f"bad_value Quiz.{name}: no run calls it, so it would have no effect: {NOT_CALLED[name]}"

    assert expected in folder.quiz_fault(added=f"{name} = None")
    derived = changed_quiz({"BaseTask[str]": "Base"})
    assert expected in folder.fault(f"class Base(BaseTask):\n    {name} = None\n{derived}")


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("def _load_dataset(self, subject): self.dataset = 5", "in the split 'test', got 5"),
        (
            "def _load_dataset(self, subject): 1 / 0",
            "python_error Quiz._load_dataset: ZeroDivisionError: division by zero (",
        ),
        (
            "def _load_dataset(self, subject): self._load_hf_dataset(path='no.jsonl')",
            "bad_value Quiz.DATASET_PATH: 'no.jsonl': no such file or folder beside the task file",
        ),
        (
            "def _get_instruction_messages(self, item): return ['x']",
            "bad_type Quiz._get_instruction_messages: item 0, and 5 more like it: expected Message(role, content)",
        ),
        (
            "def _get_messages(self, item): return [Message('system', 'x')]",
            "bad_value Quiz._get_messages: item 0, and 5 more like it: expected a message of the user",
        ),
    ],
)
def test_what_an_override_gives_is_checked(folder: TaskFolder, added: str, message: str) -> None:
    assert message in folder.quiz_fault(added=added)
