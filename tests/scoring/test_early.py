"""How many programs of models are begun ahead of the turn of their examples."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_lmeval.asking.engine import Arrived
from pytest_lmeval.loading import default_registry
from pytest_lmeval.run.early import Early
from pytest_lmeval.types import Completion, Example, Score


@dataclass(frozen=True)
class Program:
    """An example that is scored by a program, and the task that says so."""

    id: str

    @property
    def example(self) -> Example:
        return Example(self.id, "p", ("",), "code_exec")

    def metric_name(self, example: Example) -> str:
        return example.metric

    def further_metrics(self, _: Example) -> tuple[str, ...]:
        return ()

    def score(self, example: Example, *_: Any) -> Score:
        return Score(1.0)


@pytest.mark.parametrize("parallel", [1, 2])
def test_programs_are_begun_ahead_for_twice_as_many_examples_as_run_at_a_time(parallel: int) -> None:
    programs: list[Any] = [Program(str(number)) for number in range(9)]
    turn, *units = programs
    tools: Any = SimpleNamespace(judge=None, sandbox=SimpleNamespace(parallel=parallel))
    arrived = [Arrived(unit, (), [Completion("x")], is_new=True) for unit in units]
    answers: Any = SimpleNamespace(
        task=lambda unit: unit,
        engine=SimpleNamespace(arrived=lambda: arrived),
        plan=SimpleNamespace(registry=default_registry(entry_points=False)),
    )
    early = Early(1)
    assert turn.score == early.look(answers, tools, turn)
    arrived = []
    begun = [unit.id for unit in units if unit.score != early.look(answers, tools, unit)]
    early.close()
    assert [str(number) for number in range(1, 1 + 2 * parallel)] == begun
