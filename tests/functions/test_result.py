"""What the result of an example of an eval function keeps of what scoring said."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_lmeval import default_registry
from pytest_lmeval.functions import task as module
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.runner import Outcome
from pytest_lmeval.functions.task import FailureRule, FunctionTask, result_of
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds
from pytest_lmeval.types import Example, ExampleAnswer, ExampleOutcome, ExampleQuestion, ExampleResult

# What the steps of the function say, and not what scoring does; and what is of a response alone.
OWN = {"usage", "latency_ms", "request_ms", "cached", "details"}
OF_A_RESPONSE = {"outputs", "thoughts", "cut_off", "predictions"}


def test_every_field_of_what_scoring_says_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    marks: dict[str, Any] = {}

    def marked(kind: type) -> Any:
        values = {each.name: object() for each in fields(kind)}
        marks.update(values)
        return kind(**values | ({"details": {}} if "details" in values else {}))

    evaluated = ExampleResult(
        question=ExampleQuestion(task="t", id="e", metric="m", hash=""),
        answer=marked(ExampleAnswer),
        outcome=marked(ExampleOutcome),
    )
    monkeypatch.setattr(module, "evaluate", lambda *_: evaluated)
    state = ExampleState("t", "e", 0, lambda *_: None, None)
    unit: Any = SimpleNamespace(
        task=FunctionTask("t", Path("t.py"), ""), example=Example("e", "", (), "m"), function_name="test_t"
    )
    found = result_of(
        unit, [Outcome(state, None, 0.1)], FailureRule(Path()), ScoringRules(Thresholds(default_registry()))
    )
    for kind, group in ((ExampleAnswer, found.answer), (ExampleOutcome, found.outcome)):
        for name in {each.name for each in fields(kind)} - OWN - OF_A_RESPONSE:
            assert marks[name] is getattr(group, name), name
