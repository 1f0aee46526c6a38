"""The names of models that requests of eval functions ask for, now and in the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.compare.models import other_models
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row


def _results(*asked: Mapping[str, str]) -> list[ExampleResult]:
    """Return the results of examples of which each has the models that it asked for, and who answered."""
    return [_result(str(number), each) for number, each in enumerate(asked)]


def _result(id: str, asked: Mapping[str, str]) -> ExampleResult:
    steps = [
        {"kind": "request", "name": answered, "client": {"model": name}, **({} if answered else {"error": "HTTP 404"})}
        for name, answered in asked.items()
    ]
    details: dict[str, Any] = {"function": "f", "steps": [*steps, {"kind": "request", "name": "own"}]}
    return ExampleResult("t", id, "passed", 1.0, 1.0, "function", hash="h", details=details)


GOOD, MINI, OWN = {"good": "good"}, {"mini": "mini"}, {"good": "own"}
BOTH = {**GOOD, **MINI}
CASES: Any = (
    ("the same", [GOOD, GOOD], [GOOD, GOOD], "", ""),
    ("the same, answered by another", [OWN, OWN], [OWN, OWN], "", ""),
    ("another, answered by another", [OWN], [{"mini": "own"}], "t: requests ask for mini (1) now, in the baseline", ""),
    ("one more, answered by another", [OWN], [{**OWN, "mini": "own"}], "t: requests ask for mini (1) now, in the", ""),
    ("another, which did not answer", [GOOD], [{"mini": ""}], "t: requests ask for mini (1) now, in the baseline", ""),
    ("another, which answered", [GOOD], [MINI], "", "t: requests ask for mini (1) now, in the baseline for good (1)"),
    ("one that is gone", [BOTH], [OWN], "", "t: requests ask for good (1) now, in the baseline for good (1), mini (1)"),
    ("none any more", [GOOD], [{}], "", "t: requests ask for no model now, in the baseline for good (1)"),
    ("other shares", [BOTH, GOOD], [BOTH, MINI], "", "t: requests ask for mini (2), good (1) now, in the baseline for"),
    ("shares by a little", [*[GOOD] * 9, MINI], [*[GOOD] * 9, BOTH], "", ""),
    ("not known before", [{}], [OWN], "", "not compared: the names of models: the baseline's t has no names of models"),
    ("other examples", [GOOD, MINI], [GOOD], "", ""),
)


@each_row(("what", "old", "new", "untested", "said"), CASES)
def test_what_is_said_of_the_names_of_models(what: str, old: Any, new: Any, untested: str, said: str) -> None:
    found = other_models(_results(*old), _results(*new))
    for expected, lines in zip((untested, said), found, strict=True):
        assert ([expected] if expected else []) == [line[: len(expected)] for line in lines], what
