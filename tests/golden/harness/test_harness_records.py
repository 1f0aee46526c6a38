"""Tasks of lm-evaluation-harness ask and score as it does: against what it itself asked and scored (``record.py``)."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval import Completion, LogProb
from pytest_lmeval.formats.files import load_file
from pytest_lmeval.formats.task import LoadOptions
from pytest_lmeval.leaderboard.board import info_of
from pytest_lmeval.leaderboard.groups import group_scores, shown
from pytest_lmeval.leaderboard.rows import TaskRow, make_row
from pytest_lmeval.loading import default_registry
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, question_of
from pytest_lmeval.task import Task, render
from pytest_lmeval.types import ExampleResult, Generate, Request, Response
from tests.golden.harness import model as formula

HERE = Path(__file__).parent
WAYS: Mapping[str, tuple[int | None, Mapping[str, str]]] = {
    "plain": (None, {}),
    "shots": (1, {}),
    "system": (None, {"system": "Be brief."}),
    "multiturn": (2, {"chat": "multiturn"}),
    "single": (2, {"chat": "single"}),
}
NAMES = ("all_of_them", "capitals_same", "names", "lengths", "endings", "texts", "renamed", "counted")


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "records.json").read_text("utf-8"))
    return found


def loaded(folder: Path, data: Path, way: str, name: str, tmp_path: Path) -> Sequence[Task]:
    shots, more = WAYS[way]
    wanted = {"from": str(folder), "tasks": [name], "data": str(data), "bootstrap": 1000, **more}
    file = tmp_path / "wanted.yaml"
    file.write_text(json.dumps({"harness": wanted}))
    options = LoadOptions(num_fewshot=shots)
    found = load_file(file, "wanted", default_registry(), options=options, is_named=True)
    assert () == tuple(error.detail for error in found.errors)
    return found.tasks


def asked(request: Request) -> list[Any]:
    """Return a request as the harness has it."""
    if isinstance(request, Generate):
        text = request.prompt if isinstance(request.prompt, str) else _chat(request.prompt)
        return [text, [*request.stop], request.max_tokens]
    if request.rolling:
        return [request.continuation]
    return [_chat(request.messages) if request.messages else request.context, request.continuation]


def _chat(messages: Sequence[Any]) -> str:
    turns = [{"role": each.role, "content": each.content} for each in messages]
    return json.dumps([turns, turns[-1]["role"] != "assistant"])


def answered(request: Request) -> Response:
    if isinstance(request, Generate):
        return Completion(formula.answer(asked(request)[0], request.repeat))
    if request.rolling:
        return LogProb(formula.whole(request.continuation))
    context, text = asked(request)
    return LogProb(formula.total(context, text), greedy=formula.is_greedy(context, text))


def wanted_requests(record: Mapping[str, Any], task: str, place: int) -> list[Any]:
    """Return what was recorded for one document; options that read the same are asked for once."""
    own: list[Any] = []
    for name, number, given in record["requests"]:
        if (name, number) == (task, place):
            if isinstance(given[-1], dict):
                own.append([given[0], [*given[1]["until"]], given[1].get("max_gen_toks", 256)])
            elif given not in own:
                own.append(given)
    return own


def results(task: Task, record: Mapping[str, Any]) -> Iterator[ExampleResult]:
    rules = ScoringRules(Thresholds(default_registry()))
    for example in task.examples:
        prompt = render(example)
        requests = task.requests(example, prompt)
        assert wanted_requests(record, task.name, int(example.id)) == [*map(asked, requests)]
        result = evaluate(task, example, question_of(task, example, prompt), [*map(answered, requests)], rules)
        assert "" == result.error
        yield ExampleResult.from_json(result.to_json())


def check(task: Task, record: Mapping[str, Any]) -> TaskRow:
    """Compare one task's requests, metrics of documents, aggregates and errors; return its row."""
    own = [*results(task, record)]
    for place, name, metrics in record["samples"][task.name]:
        details = own[place].details["harness"]
        for metric, value in metrics.items():
            assert_close(value, details[f"{metric},{name}"], f"{task.name}.{place} {metric},{name}")
    made = task.aggregate(own)
    for key, value in record["results"][task.name].items():
        metric, _, name = key.partition(",")
        if metric.endswith("_stderr"):
            error = made["notes"]["harness"][f"{metric.removesuffix('_stderr')},{name}"]["stderr"]
            assert_close(None if value == "N/A" else value, error, key)
        else:
            assert_close(value, made["metrics"][shown(key)], key)
    return make_row(info_of(task), own, aggregates=made)


def check_groups(rows: Sequence[TaskRow], record: Mapping[str, Any]) -> None:
    found = group_scores(rows)
    for group, of in record["groups"].items():
        for key, value in of.items():
            metric, _, name = key.partition(",")
            is_error = metric.endswith("_stderr")
            score = found[group]["metrics"][f"{metric.removesuffix('_stderr')},{name}"]
            given = score["stderr"] if is_error else score["value"]
            assert_close(None if value == "N/A" else value, given, f"{group} {key}")


def assert_close(expected: Any, actual: Any, what: str) -> None:
    if isinstance(expected, dict):
        assert expected.keys() == actual.keys(), what
        for key, one in expected.items():
            assert_close(one, actual[key], f"{what} {key}")
    elif isinstance(expected, list):
        assert len(expected) == len(actual), what
        for one, other in zip(expected, actual, strict=True):
            assert_close(one, other, what)
    elif isinstance(expected, int | float) and isinstance(actual, int | float):
        assert math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-12), f"{what}: {expected} != {actual}"
    else:
        assert expected == actual, what


def test_numbers_of_another_machine_are_close_wherever_they_are_and_other_differences_are_found() -> None:
    recorded = {"plain": [{"brier": 5.6318389497570735e-11, "asked": "a"}]}

    assert_close(recorded, {"plain": [{"brier": 5.631838949757074e-11, "asked": "a"}]}, "records")
    for other in ({"brier": 0.1, "asked": "a"}, {"brier": 5.6318389497570735e-11, "asked": "b"}, {"asked": "a"}):
        with pytest.raises(AssertionError, match="records plain"):
            assert_close(recorded, {"plain": [other]}, "records")


@pytest.mark.parametrize("way", WAYS)
def test_requests_metrics_aggregates_errors_and_groups_are_those_of_the_harness(way: str, tmp_path: Path) -> None:
    for name in NAMES:
        record = recorded()[way][name]
        rows = [check(task, record) for task in loaded(HERE / "tasks", HERE / "data", way, name, tmp_path)]
        assert {row.task for row in rows} == record["samples"].keys()
        check_groups(rows, record)


def test_neither_the_harness_nor_its_data_sets_are_imported(tmp_path: Path) -> None:
    assert loaded(HERE / "tasks", HERE / "data", "plain", "all_of_them", tmp_path)
    assert {"lm_eval"}.isdisjoint(sys.modules)
