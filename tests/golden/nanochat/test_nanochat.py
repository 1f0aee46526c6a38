"""Ports of nanochat's tasks ask what it asks, and score as it scores; see the README above this folder."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval.adapters.bigram import Bigram
from pytest_lmeval.formats.python.dialogue_task import DialogueTask
from pytest_lmeval.loading import load_tasks
from pytest_lmeval.sandbox import Sandbox, open_sandbox
from pytest_lmeval.task import Task, Tools, render
from pytest_lmeval.tasks.execution import running_code_in
from pytest_lmeval.types import Completion, LogLikelihood, LogProb

HERE = Path(__file__).parent
NAMES = ("arc", "gsm8k", "humaneval", "mmlu", "mmlu_view", "simple_spelling", "spelling_bee")
LETTERS = ("arc", "mmlu", "mmlu_view")


def record(name: str) -> Any:
    return json.loads((HERE / "records" / f"{name}.json").read_text("utf-8"))


@cache
def ports() -> dict[str, Any]:
    return {task.name: task for task in load_tasks(HERE / "task_talks.py")}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Provide what runs the programs of the records, all of which are ours."""
    with open_sandbox() as opened:
        yield opened


def test_every_record_has_a_port_and_what_is_trained_on_is_no_task() -> None:
    assert set(NAMES) == ports().keys()


@pytest.mark.parametrize("name", NAMES)
def test_the_conversations_are_the_same(name: str) -> None:
    task = ports()[name]
    for number, one in enumerate(record(name)):
        theirs, ours = one["conversation"], json.loads(json.dumps(task.task[number]))
        asked = [[message.role, message.content] for message in task.examples[number].messages]
        assert asked == [[turn["role"], turn["content"]] for turn in theirs["messages"][:-1]]
        # What SpellingBee would have the model say is longer there; the number at its end is what counts.
        assert name == "spelling_bee" or theirs == ours


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_worth_the_same(name: str, sandbox: Sandbox) -> None:
    task: DialogueTask = ports()[name]
    for number, one in enumerate(record(name)):
        for answer in one["answers"]:
            score = task.score(task.examples[number], [Completion(answer["text"])], Tools(sandbox))
            assert answer["score"] == score.value, answer


@pytest.mark.parametrize("name", LETTERS)
def test_the_most_probable_letter_is_worth_the_same(name: str) -> None:
    task: DialogueTask = ports()[name].prepared(Probable())
    for number, one in enumerate(record(name)):
        example = task.examples[number]
        for place, answer in enumerate(one["answers"]):
            given = [LogProb(-float(place != each)) for each in range(len(one["answers"]))]
            assert answer["score"] == task.score(example, given, Tools()).value
            assert len(given) == len(task.requests(example, render(example)))


class Probable:
    name = "probable"

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[LogProb]:
        raise NotImplementedError


def test_programs_run_outside_a_run_are_worth_the_same(sandbox: Sandbox) -> None:
    task = ports()["humaneval"].task
    with running_code_in(sandbox):
        for number, one in enumerate(record("humaneval")):
            (right, *_) = one["answers"]
            assert right["score"] == task.evaluate(task[number], right["text"])


@pytest.mark.parametrize(("variable", "kind"), [("to_train_on", "TaskMixture"), ("one_by_one", "TaskSequence")])
def test_mixtures_have_the_same_order(variable: str, kind: str) -> None:
    module = sys.modules[type(ports()["arc"].task).__module__]
    mixture = getattr(module, variable)

    assert record("mixture")[kind] == [mixture[index]["messages"] for index in range(len(mixture))]


# CORE


CORE = record("core")


@cache
def bigram() -> Bigram:
    """Return the model of the record: it counts which byte follows which."""
    return Bigram((HERE / "bundle" / "model.txt").read_text("utf-8").splitlines())


@cache
def core_tasks() -> dict[str, Task]:
    return {task.name: task for task in load_tasks(HERE / "bundle" / "core.yaml")}


@pytest.mark.parametrize("label", CORE["tasks"])
def test_core_prompts_are_the_same(label: str) -> None:
    task = core_tasks()[label]
    for one, example in zip(CORE["tasks"][label], task.examples, strict=True):
        requests = [each for each in task.requests(example, render(example)) if isinstance(each, LogLikelihood)]
        # Of language modeling the prompt without the continuation is recorded, too: it ends where that begins.
        whole = one["prompts"][1:] if label.startswith("endings") else one["prompts"]
        assert whole == [each.context + each.continuation for each in requests]
        assert not label.startswith("endings") or one["prompts"][0] == requests[0].context


@pytest.mark.parametrize("label", CORE["tasks"])
def test_core_verdicts_are_the_same(label: str) -> None:
    task = core_tasks()[label]
    for one, example in zip(CORE["tasks"][label], task.examples, strict=True):
        asked = [each for each in task.requests(example, render(example)) if isinstance(each, LogLikelihood)]
        answers = [answer for each in asked if isinstance(answer := bigram().log_prob(each), LogProb)]
        assert one["right"] == (task.score(example, answers, Tools()).value == 1.0)


class Model:
    """The model of the record as an adapter."""

    name = "bigram"

    def loglikelihood(self, requests: Sequence[LogLikelihood]) -> list[Any]:
        return [bigram().log_prob(request) for request in requests]

    def generate(self, prompts: Sequence[str]) -> list[str]:
        raise NotImplementedError


def test_the_core_score_of_a_bundle_is_the_same(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(HERE / "bundle", bundle)
    for file in (bundle / "eval_data").glob("*.jsonl"):
        # It shuffles the records itself, before few-shots are drawn.
        lines = file.read_text("utf-8").splitlines()
        random.Random(1337).shuffle(lines)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    board = pytest_lmeval.run_leaderboard(load_tasks(bundle / "core.yaml"), Model())
    rows = {row.task: row for row in board.tasks}

    assert CORE["bundle"]["results"] == pytest.approx({name: row.score for name, row in rows.items()})
    centred = {name: row.metrics["centered"] for name, row in rows.items()}
    assert CORE["bundle"]["centered_results"] == pytest.approx(centred)
    assert CORE["bundle"]["core_metric"] == pytest.approx(board.core_score)
