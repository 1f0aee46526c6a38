"""CORE tasks of every type with a real model: what a plain loop over the softmax says, whatever the batch and order."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_lmeval.adapters.hf import HfAdapter, adapter, scoring
from pytest_lmeval.adapters.hf.batches import BatchLimits, batches, size_of
from pytest_lmeval.adapters.hf.passes import can_go_on, name_of_past
from pytest_lmeval.adapters.hf.rows import RowFamily, ScoredRow, families
from pytest_lmeval.formats.core import CoreTask, load_core
from pytest_lmeval.formats.task import TaskSource
from pytest_lmeval.registry import Registry
from pytest_lmeval.run.library import run_tasks
from pytest_lmeval.run.settings import RunSettings
from pytest_lmeval.types import LogLikelihood, LogProb
from tests import needs

from .tiny_model import FACTS, WINDOW

CORE = needs.DATA / "core"
ANSWERS = [answer for _, answer in FACTS]
OWN: dict[str, list[dict[str, Any]]] = {
    "multiple_choice": [
        {"query": question, "choices": [answer, ANSWERS[number - 1], answer + " or not"], "gold": 0}
        for number, (question, answer) in enumerate(FACTS)
    ],
    "schema": [
        {"context_options": [f"They say {said}. {question}" for said in (ANSWERS[number - 1], answer)]}
        | {"continuation": answer, "gold": 1}
        for number, (question, answer) in enumerate(FACTS)
    ],
    "language_modeling": [{"context": question, "continuation": answer} for question, answer in FACTS],
}
PUBLISHED = {
    "copa.jsonl": ("multiple_choice", 30),
    "winograd_wsc.jsonl": ("schema", 60),
    "lambada_openai_small.jsonl": ("language_modeling", 8),
}


def load(folder: Path, kind: str, records: Sequence[Any], shots: int = 0) -> CoreTask:
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    (folder / "chance.csv").write_text("Eval Task,Random baseline\ntask,25\n")
    entry = {"label": "task", "dataset_uri": "data.jsonl", "num_fewshot": shots, "icl_task_type": kind}
    loaded = load_core(TaskSource(folder / "core.yaml", b"", "core"), {"icl_tasks": [entry]}, Registry())
    (task,) = loaded.tasks
    assert isinstance(task, CoreTask)
    return task


def prompts(kind: str, records: Sequence[Any], index: int, shots: int) -> list[str]:
    """Return the whole prompts of a record; of a text to go on from also the prompt without it, first."""

    def whole(record: Any, number: int) -> str:
        if kind == "multiple_choice":
            return f"{record['query']} {record['choices'][number]}"
        if kind == "schema":
            return f"{record['context_options'][number]} {record['continuation']}"
        return f"{record['context'].strip()} {record['continuation']}"

    others = [number for number in range(len(records)) if number != index]
    drawn = random.Random(1234 + index).sample(others, shots)
    before = "".join(whole(records[number], records[number].get("gold", 0)) + "\n\n" for number in drawn)
    record = records[index]
    if kind == "language_modeling":
        return [before + record["context"].strip(), before + whole(record, 0)]
    options = record.get("choices") or record["context_options"]
    return [before + whole(record, number) for number in range(len(options))]


def alike(rows: Sequence[Sequence[int]]) -> int:
    size = 0
    while size < min(map(len, rows)) and len({row[size] for row in rows}) == 1:
        size += 1
    return size


def by_hand(model: HfAdapter, kind: str, records: Sequence[Any], index: int, shots: int) -> tuple[float, list[float]]:
    """Return score and mean losses by one forward pass per prompt, spans found on the tokens of the whole prompts."""
    tokens = [model._prompts.plain(text) for text in prompts(kind, records, index, shots)]
    if kind == "language_modeling":
        start = [alike(tokens)]
        tokens = tokens[1:]
    elif kind == "schema":
        start = [len(row) - alike([row[::-1] for row in tokens]) for row in tokens]
    else:
        start = [alike(tokens)] * len(tokens)
    if any(len(row) == begin for row, begin in zip(tokens, start, strict=True)):
        start = [len(model._prompts.plain(records[index]["query"]))] * len(tokens)
    found = [_span(model, row, len(row) - begin) for row, begin in zip(tokens, start, strict=True)]
    losses = [loss for loss, _ in found]
    if kind == "language_modeling":
        return float(found[0][1]), losses
    return float(losses.index(min(losses)) == records[index]["gold"]), losses


def _span(model: HfAdapter, tokens: list[int], size: int) -> tuple[float, bool]:
    import torch

    read = tokens[:-1][-WINDOW:]
    with torch.inference_mode():
        logprobs = torch.log_softmax(model._open().model(input_ids=torch.tensor([read])).logits[0], -1)
    pairs = list(zip(range(len(read) - size, len(read)), tokens[-size:], strict=True))
    losses = [-float(logprobs[place][token]) for place, token in pairs]
    return math.fsum(losses) / size, all(int(logprobs[place].argmax()) == token for place, token in pairs)


def check(model: HfAdapter, task: CoreTask, records: Sequence[Any], shots: int = 0) -> None:
    results = {result.id: result for result in run_tasks([task], model, RunSettings(batch_size=5)).results}
    for index in range(len(records)):
        value, losses = by_hand(model, task.kind, records, index, shots)
        result = results[f"ex-{index + 1}"]
        assert value == result.score, result
        assert losses == pytest.approx([option["loss"] for option in result.details["options"]], abs=1e-4)


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("shots", [0, 2])
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_losses_and_verdicts_are_those_of_a_plain_loop(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, kind: str, shots: int
) -> None:
    check(request.getfixturevalue(name), load(tmp_path, kind, OWN[kind], shots), OWN[kind], shots)


@needs.needs_file(CORE)
@pytest.mark.parametrize("file", PUBLISHED)
def test_published_records_are_scored_as_by_a_plain_loop(llama: HfAdapter, tmp_path: Path, file: str) -> None:
    kind, count = PUBLISHED[file]
    records = [json.loads(line) for line in (CORE / file).read_text("utf-8").splitlines()[:count]]
    check(llama, load(tmp_path, kind, records), records)


def test_what_it_was_taught_is_right(llama: HfAdapter, tmp_path: Path) -> None:
    (tmp_path / "chance.csv").touch()
    results = run_tasks([load(tmp_path, "language_modeling", OWN["language_modeling"])], llama).results
    assert [1.0] * len(FACTS) == [result.score for result in results]


@pytest.mark.parametrize("kind", OWN)
def test_batch_and_order_change_no_score(llama: HfAdapter, tmp_path: Path, kind: str) -> None:
    records = OWN[kind] + [dict(record) for record in OWN[kind]][::-1]
    task = load(tmp_path, kind, records, shots=1)
    requests = [one for example in task.examples for one in task.requests(example, example.prompt)]
    asked = [one for one in requests if isinstance(one, LogLikelihood)]
    expected = {one: found.tokens for one, found in zip(asked, answers(llama, asked), strict=True)}
    shuffled = random.Random(0).sample(asked, len(asked))
    for one, found in zip(shuffled, answers(llama, shuffled), strict=True):
        assert expected[one] == pytest.approx(found.tokens, abs=1e-4)
    scores = [
        [
            (one.id, one.score, one.predictions, one.hash)
            for one in run_tasks([task], llama, RunSettings(batch_size=size)).results
        ]
        for size in (1, 3, 20)
    ]
    assert scores[0] == scores[1] == scores[2]


def answers(model: HfAdapter, requests: Sequence[LogLikelihood]) -> list[LogProb]:
    found = model.loglikelihood(requests)
    assert all(isinstance(one, LogProb) for one in found)
    return [one for one in found if isinstance(one, LogProb)]


# What is read once


LONG = "Bees make honey and people eat it with bread, while dogs bark at the moon. What do bees make?"


def test_the_options_of_a_long_context_read_it_once(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    plain = llama._open().model.forward
    requests = [LogLikelihood(LONG, f" {answer}") for answer in ANSWERS] + [LogLikelihood("Say", " hello in French.")]
    # As its requests are asked for one at a time, nothing can be shared.
    alone = [found for one in requests for found in answers(llama, [one])]

    def forward(input_ids: Any, attention_mask: Any, **given: Any) -> Any:
        read.append(input_ids.numel())
        return plain(input_ids=input_ids, attention_mask=attention_mask, **given)

    monkeypatch.setattr(llama._open().model, "forward", forward)
    together = answers(llama, requests)
    context = len(llama._prompts.plain(LONG))
    assert sum(read) < 5 * context
    monkeypatch.setattr(llama, "_goes_on", False)
    apart = answers(llama, requests)
    assert sum(read) > 9 * context
    for one, other, third in zip(alone, together, apart, strict=True):
        assert one.tokens == pytest.approx(other.tokens, abs=1e-4)
        assert one.tokens == pytest.approx(third.tokens, abs=1e-4)
        assert (one.greedy, one.ids) == (other.greedy, other.ids) == (third.greedy, third.ids)


@pytest.mark.parametrize("limit", [1, 40, 100, 10_000])
def test_a_family_that_is_too_large_is_read_in_parts(
    llama: HfAdapter, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(adapter, "_ENOUGH_TO_SCORE", limit)
    requests = [LogLikelihood(LONG, f" {answer}") for answer in ANSWERS]
    expected = [found for one in requests for found in answers(llama, [one])]
    for one, other in zip(expected, answers(llama, requests), strict=True):
        assert one.tokens == pytest.approx(other.tokens, abs=1e-4)


def test_no_prediction_is_asked_for_within_what_is_shared() -> None:
    begin = list(range(20))
    rows = [ScoredRow([*begin, 20], {0: [20, 21]}), ScoredRow([*begin, 20, 21], {1: [20, 21, 22]})]
    (family,) = families(rows)
    size = size_of([family])
    assert (19, 22, 3, 3) == (family.shared, size.width, size.rest, size.kept)


def test_what_is_worth_no_second_pass_is_read_whole() -> None:
    rows = [ScoredRow([1, 2, 3, 4], {0: [5]}), ScoredRow([1, 2, 9, 4, 5], {1: [6]}), ScoredRow([7], {2: [8]})]
    assert [0, 0, 0] == [family.shared for family in families(rows)]


def test_batches_hold_everything_once_and_no_more_than_fits() -> None:
    luck = random.Random(0)
    rows = [ScoredRow([luck.randrange(9) for _ in range(luck.randrange(1, 40))], {number: [1]}) for number in range(60)]
    plain = [RowFamily([row]) for row in rows[:40]]
    twins = [ScoredRow([*row.tokens, 9, 9], {number: [1]}) for number, row in enumerate(rows[40:], 60)]
    shared = [RowFamily(pair, len(pair[0].tokens)) for pair in zip(rows[40:], twins, strict=True)]
    found = list(batches([*plain, *shared], BatchLimits(100, 10)))
    asked = [number for batch in found for family in batch for row in family.rows for number in row.asked]
    assert sorted(asked) == sorted(n for family in [*plain, *shared] for row in family.rows for n in row.asked)
    for batch in found:
        assert 1 == len({family.shared > 0 for family in batch})
        width = max(len(row.tokens) for family in batch for row in family.rows)
        assert 1 == len(batch) or sum(len(family.rows) for family in batch) * width <= 400


@pytest.mark.parametrize(
    ("change", "shares"),
    [
        ({}, True),
        ({"layer_types": ["full_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"sliding_window": 16}, False),
    ],
)
def test_only_models_that_attend_to_everything_go_on_from_what_is_shared(
    llama: HfAdapter, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], shares: bool
) -> None:
    model = llama._open().model
    for name, value in change.items():
        monkeypatch.setattr(model.config, name, value, raising=False)
    assert shares == can_go_on(model)


def test_of_a_model_of_several_kinds_the_part_that_reads_text_decides(
    llama: HfAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = llama._open().model
    text = SimpleNamespace(layer_types=["full_attention", "linear_attention"])
    monkeypatch.setattr(model.config, "get_text_config", lambda: text, raising=False)
    assert not can_go_on(model)


def test_a_model_of_somebody_elses_code_shares_nothing(llama: HfAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(llama._open().model), "__module__", "transformers_modules.own.model")
    assert not can_go_on(llama._open().model)


# Ties


def test_of_tokens_equally_likely_the_first_is_the_greedy_one() -> None:
    torch = needs.module("torch", "torch")
    predicted = torch.tensor([[0.0, 2.0, 2.0], [1.0, 0.0, 0.0]])
    places = torch.tensor([0, 0, 1])
    _, greedy = scoring._look_up(predicted, places, torch.tensor([1, 2, 1]))
    assert [True, False, False] == greedy


def test_what_a_model_goes_on_from_is_called_as_its_version_of_the_library_calls_it(llama: HfAdapter) -> None:
    class Before:
        def forward(self, input_ids: Any, past_key_values: Any = None) -> None: ...

    class Since:
        def forward(self, input_ids: Any, cache: Any = None) -> None: ...

    assert ("past_key_values", "cache") == (name_of_past(Before()), name_of_past(Since()))
    assert can_go_on(llama._open().model)
