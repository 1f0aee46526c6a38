"""A project in which every field of a result says something: a model that tells all, and metrics of every outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.sources import source

__all__ = ["EVALS", "METERED"]

_CONFTEST = """
from pytest_lmeval.types import Metric, Score

def every_outcome(prediction, targets, extras):
    if prediction == "odd":
        raise ValueError("an odd word")
    return Score(
        float(prediction == targets[0]),
        details={"length": len(prediction)},
        prediction=prediction,
        unparsed=prediction == "empty",
        metrics={"short": float(len(prediction) < 5)},
        excluded="not English" if prediction == "nein" else "",
        usage={"prompt_tokens": 1, "cost": 0.5},
        measured=prediction == "measured",
    )

def pytest_lmeval_register(registry):
    registry.add_declared(Metric("every_outcome", every_outcome, threshold=0.5))
"""
_WORDS = ["sure", "moody", "deep", "cut", "free", "odd", "nein", "measured", "empty", "busy", "boom", "late", "refused"]
_FUNCTIONS = """
import pytest
from pytest_lmeval import eval_task

ROWS = [
    {"id": said, "said": said, "subject": "even" if number % 2 else "odd"}
    for number, said in enumerate(["sure", "deep", "cut", "late", "skip", "fail", "moody"])
]

@eval_task("steps", data=ROWS, score="right", threshold=0.5, min_score=0.1)
async def test_steps(row, lm):
    if row["said"] == "skip":
        pytest.skip("not today")
    with lm.span("first"):
        first = await lm.ask("say: " + row["said"])
    again = await lm.ask([{"role": "user", "content": "say: " + first.text}])
    lm.score("right", again.text == first.text)
    lm.score("judged", await lm.judge("Fine?", again.text) == "yes")
    lm.note("length", len(first.text))
    lm.step("tool", "count", input=first.text, output=len(first.text))
    assert row["said"] != "fail", "as it must"
"""


def _lines(*records: Mapping[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _record(said: str, metric: str, **extras: Any) -> dict[str, Any]:
    target = "white" if said in ("free", "cut") else said
    return {"id": said, "prompt": f"say: {said}", "targets": [target], "metric": metric, "extras": extras}


METERED: Mapping[str, str] = {
    "model.py": source("metered/model.py"),
    "conftest.py": _CONFTEST,
    "pytest.ini": "[pytest]\n",
    "tasks/outcomes.jsonl": _lines(*[_record(said, "every_outcome") for said in _WORDS if said != "measured"]),
    "tasks/measured.jsonl": _lines(_record("measured", "every_outcome")),
    "tasks/plain.jsonl": _lines(
        _record("busy", "exact_match", cluster="a"),
        _record("deep", "exact_match", cluster="a", must_pass=True),
        _record("free", "exact_match", cluster="b", quarantine={"until": "2999-12-31", "reason": "flips"}),
    ),
}
EVALS: Mapping[str, str] = {
    "model.py": source("metered/model.py"),
    "conftest.py": "",
    "pytest.ini": "[pytest]\n",
    "tests/test_steps.py": _FUNCTIONS,
}
