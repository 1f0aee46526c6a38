"""The fixture ``lm``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_lmeval.plugin.asking.state import run_state
from pytest_lmeval.plugin.collect.locate import is_function
from pytest_lmeval.plugin.settings.models import of_model


def provide(request: pytest.FixtureRequest, engine: Any, judge: Any) -> Iterator[Any]:
    """Yield the ``lm`` of the item that asks."""
    item: Any = request.node
    evals = run_state(request.config).evals
    if is_function(item):
        engine, judge = of_model(engine, item.label), of_model(judge, item.label)
        yield item.evals.lm_of(item, engine, judge, blocks=not (item.spec is not None and item.spec.is_async))
        return
    if not hasattr(item, "example"):
        raise pytest.UsageError(f"{item.nodeid}: lm is for test functions; this is a {type(item).__name__}")
    lm = evals.lm_of(item, engine, judge, blocks=not inspect.iscoroutinefunction(getattr(item, "function", None)))
    evals.follow(item)
    yield lm
