"""What the simulations of this folder share: the benchmarks, which are scripts, and how often they are run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def few_and_all(few: int, every: int) -> list[Any]:
    """Return the rounds of a simulation in the default run and under --all."""
    return [few, pytest.param(every, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def simulation(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Import the benchmark that the module names in ``BENCHMARK``."""
    name = request.module.BENCHMARK
    spec = importlib.util.spec_from_file_location(f"{name}_simulation", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
