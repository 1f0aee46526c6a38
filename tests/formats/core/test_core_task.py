"""What a CORE task asks for, and what it makes of the answers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.core import CoreTask
from pytest_lmeval.formats.loglikelihood import log_probs_of
from pytest_lmeval.scoring.evaluate import hashes
from pytest_lmeval.task import Tools, render
from pytest_lmeval.types import Completion, Example, Generate, LogLikelihood, LogProb, Message, Score

from .bundle import CHOICES, LANGUAGE, SCHEMAS, entry, load_bundle, only_task, write_bundle


def task_of(folder: Path, kind: str, **fields: Any) -> CoreTask:
    data = {"multiple_choice": CHOICES, "schema": SCHEMAS, "language_modeling": LANGUAGE}[kind]
    return only_task(load_bundle(write_bundle(folder, [entry("task", kind, **fields)], {"task": data})))


def asked(task: CoreTask, example: Example) -> list[tuple[str, str]]:
    requests = task.requests(example, render(example))
    return [(one.context, one.continuation) for one in requests if isinstance(one, LogLikelihood)]


def prob(ids: str, *tokens: float, greedy: bool = False) -> LogProb:
    return LogProb(math.fsum(tokens), tokens, greedy, ids=tuple(ids))


def score(task: CoreTask, number: int, *responses: LogProb) -> Score:
    return task.score(task.examples[number], responses, Tools())


def test_every_option_is_asked_for_after_the_same_context(tmp_path: Path) -> None:
    task = task_of(tmp_path, "multiple_choice")
    assert [("Bees make", f" {text}") for text in ("honey", "wool", "glass")] == asked(task, task.examples[0])
    request = task.requests(task.examples[0], "x")[0]
    assert ("task", "ex-1") == (request.task, request.id)


def test_options_that_read_the_same_are_asked_for_once(tmp_path: Path) -> None:
    task = task_of(tmp_path, "multiple_choice")
    assert [("Spiders spin", " webs"), ("Spiders spin", " glass")] == asked(task, task.examples[3])
    result = score(task, 3, prob("a", -1.0), prob("b", -2.0))
    assert (1.0, "webs", 0) == (result.value, result.prediction, result.details["chosen"])


def test_a_context_that_is_rendered_otherwise_is_asked_for(tmp_path: Path) -> None:
    task = task_of(tmp_path, "multiple_choice")
    messages = (Message("system", "Be right."), Message("user", "Bees make"))
    requests = [task.requests(task.examples[0], prompt)[0] for prompt in ("BEES MAKE", messages)]
    contexts = [request.context for request in requests if isinstance(request, LogLikelihood)]
    assert ["BEES MAKE", Generate(messages).text] == contexts


def test_a_schema_asks_for_the_same_after_every_context(tmp_path: Path) -> None:
    task = task_of(tmp_path, "schema")
    first, second = SCHEMAS[0]["context_options"]
    assert [(first, " was thin."), (second, " was thin.")] == asked(task, task.examples[0])
    assert f"{first}\n{second}" == task.examples[0].prompt


def test_a_text_is_asked_for_in_one_piece(tmp_path: Path) -> None:
    task = task_of(tmp_path, "language_modeling", continuation_delimiter="\nAnswer: ")
    assert [("What do bees make?\nAnswer:", " honey")] == asked(task, task.examples[0])


def test_the_lowest_mean_loss_is_chosen_not_the_highest_sum(tmp_path: Path) -> None:
    result = score(task_of(tmp_path, "multiple_choice"), 1, prob("a", -2.0), prob("bcd", -1.0, -1.0, -1.0))
    assert (1.0, "wool", 1) == (result.value, result.prediction, result.details["chosen"])
    assert 0.0 == result.metrics["acc"]
    shares = [math.exp(-2) / (math.exp(-2) + math.exp(-3)), math.exp(-3) / (math.exp(-2) + math.exp(-3))]
    assert pytest.approx(shares[1]) == result.metrics["probability_mass"]
    assert pytest.approx(shares[1]) == result.details["confidence"]


@pytest.mark.parametrize(("gold", "value"), [(0, 1.0), (1, 0.0)])
def test_an_option_that_another_begins_with_neither_wins_nor_loses_by_its_place(
    tmp_path: Path, gold: int, value: float
) -> None:
    task = task_of(tmp_path, "multiple_choice")
    example = replace(task.examples[1], metadata={**task.examples[1].metadata, "gold": gold})
    given = [prob("ab", -1.0, -1.0), prob("abc", -1.0, -1.0, -4.0)]
    assert value == task.score(example, given, Tools()).value
    turned = {**example.metadata, "gold": 1 - gold}
    assert value == task.score(replace(example, metadata=turned), given[::-1], Tools()).value


def test_length_is_that_of_the_option_alone(tmp_path: Path) -> None:
    # " honey" against " wool": -5 / 5 is -1, -4.4 / 4 is -1.1.
    result = score(task_of(tmp_path, "multiple_choice"), 1, prob("a", -5.0), prob("b", -4.4))
    assert {"acc": 1.0, "acc_norm": 0.0, "acc_norm_bytes": 0.0} == {
        name: result.metrics[name] for name in ("acc", "acc_norm", "acc_norm_bytes")
    }


def test_a_schema_compares_what_ends_alike(tmp_path: Path) -> None:
    result = score(task_of(tmp_path, "schema"), 0, prob("xbc", -99.0, -1.0, -1.0), prob("ybc", -1.0, -2.0, -2.0))
    assert (1.0, 0) == (result.value, result.details["chosen"])
    assert SCHEMAS[0]["context_options"][0] == result.prediction
    assert {"acc", "probability_mass"} == set(result.metrics)


@pytest.mark.parametrize("greedy", [True, False])
def test_a_text_is_right_where_every_token_is_the_likeliest(tmp_path: Path, greedy: bool) -> None:
    result = score(task_of(tmp_path, "language_modeling"), 0, prob("ab", -0.1, -0.2, greedy=greedy))
    assert (float(greedy), "honey" if greedy else "") == (result.value, result.prediction)
    assert len(" honey") == result.details["bytes"]


@pytest.mark.parametrize("kind", ["multiple_choice", "schema", "language_modeling"])
def test_the_details_are_json_and_score_the_same_again(tmp_path: Path, kind: str) -> None:
    task = task_of(tmp_path, kind)
    count = len(asked(task, task.examples[0]))
    given = [prob(f"{number}bc", -0.3, -1.0 - number, -0.7, greedy=True) for number in range(count)]
    once = score(task, 0, *given)
    held = log_probs_of(json.loads(json.dumps(once.details)))
    again = score(task, 0, *held)
    assert (once.value, once.prediction) == (again.value, again.prediction)
    assert once.metrics == pytest.approx(again.metrics)


def test_a_completion_cannot_be_scored(tmp_path: Path) -> None:
    task = task_of(tmp_path, "language_modeling")
    with pytest.raises(ScoringError):
        task.score(task.examples[0], [Completion("honey")], Tools())


@pytest.mark.parametrize("kind", ["multiple_choice", "schema", "language_modeling"])
def test_the_hash_tells_what_is_compared(tmp_path: Path, kind: str) -> None:
    task = task_of(tmp_path, kind)
    example = task.examples[0]

    def different(changes: Sequence[dict[str, Any]]) -> set[str]:
        changed = [replace(example, metadata={**example.metadata, **change}) for change in changes]
        return {hashes(task, one, "prompt")[0] for one in changed}

    assert 4 == len(different([{}, {"gold": 7}, {"continuations": ("x",)}, {"contexts": ("x",)}]))
