"""What the simulations of this folder share: the benchmarks, which are scripts, and how often they are run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sources import imported_benchmark


def few_and_all(few: int, every: int) -> list[Any]:
    """Return the rounds of a simulation in the default run and under --all."""
    return [few, pytest.param(every, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def simulation(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Import the benchmark that the module names in ``BENCHMARK``."""
    with imported_benchmark(request.module.BENCHMARK) as module:
        yield module
