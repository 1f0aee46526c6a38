"""Measures one ``lm.ask`` of a ``def`` function, from the call of the function to its outcome, without pytest.

Usage: ``python benchmarks/asks.py [--examples N] [--rounds N]``; some seconds. Prints microseconds of CPU of the whole
process for each example, for models that answer at once, medians of rounds in turns. It measures the package that
Python finds: with ``PYTHONPATH`` that of another tree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.example import ExampleState
from pytest_lmeval.functions.lm import BlockingLm, Services
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.runner import Runner, Running
from pytest_lmeval.functions.tools import ToolRecords
from pytest_lmeval.types import Generate

_AT_ONCE = 256
_US = 1e6


class _Async:
    """Answers one request at a time."""

    name = "async"

    async def complete(self, request: Generate) -> str:
        return request.text


class _Batches:
    """Answers eight prompts at a time."""

    name = "batches"

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return [*prompts]


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description="Measure one lm.ask of a def function.")
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ways = [(adapter, in_thread) for in_thread in (True, False) for adapter in (_Async, _Batches)]
    rounds = [
        [_cost(adapter(), in_thread, options.examples) for adapter, in_thread in ways] for _ in range(options.rounds)
    ]
    for (adapter, in_thread), costs in zip(ways, zip(*rounds, strict=True), strict=True):
        where = f"in threads, {_AT_ONCE} at a time" if in_thread else "at its turn"
        print(f"{where}, {adapter.name}: {median(costs):.0f} us [{min(costs):.0f}-{max(costs):.0f}]")


def _cost(adapter: Any, in_thread: bool, examples: int) -> float:
    """Return the microseconds of one example."""
    loop = Loop(lambda: None)
    asker = Asker(Engine(adapter, Policy(concurrency=_AT_ONCE)), loop, None, lambda *_: None)
    records = ToolRecords(adapter, None, None, loop)
    runner, services = Runner(loop, _AT_ONCE), Services(asker, None, _no_endpoint, None, lambda: records)
    _run(runner, [_example(services, number, in_thread) for number in range(20)])
    began = [_example(services, number, in_thread) for number in range(examples)]
    started = time.process_time()
    _run(runner, began)
    seconds = time.process_time() - started
    asker.engine.close()
    loop.close()
    return seconds / examples * _US


def _no_endpoint() -> Any:
    return None


def _example(services: Services, number: int, in_thread: bool) -> Running:
    lm = BlockingLm(services)

    def function() -> None:
        assert str(number) == lm.ask(str(number)).text

    return Running(function, lm, [ExampleState("task", str(number), 0, lambda *_: None)], in_thread=in_thread)


def _run(runner: Runner, examples: Sequence[Running]) -> None:
    if examples[0].in_thread:
        runner.begin(examples)
    for example in examples:
        if not example.in_thread:
            runner.run_here(example)
        example.done.wait()
        assert example.outcomes[0].error is None, example.outcomes


if __name__ == "__main__":
    main()
