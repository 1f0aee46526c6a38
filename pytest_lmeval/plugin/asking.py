"""The engine of one process of a run, as the options set it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.engine.engine import Engine
from pytest_lmeval.engine.policy import Policy

if TYPE_CHECKING:
    from pytest_lmeval.plugin.ahead import Ahead
    from pytest_lmeval.plugin.state import RunState

__all__ = ["open_engine"]


def open_engine(run: RunState, adapter: Any, batches: Sequence[Sequence[pytest.Item]], ahead: Ahead) -> Engine:
    """Return the engine that asks ``adapter`` about this process's examples, ``ahead`` of their turn."""
    option = run.config.option
    policy = Policy(
        batch_size=run.batch_size,
        concurrency=option.lm_concurrency,
        timeout_s=option.lm_timeout,
        retries=option.lm_retries,
        max_cost=_budget(run),
        share=getattr(run.config, "workerinput", {}).get("workercount", 1),
        passthrough=(pytest.exit.Exception,),
    )
    engine = Engine(adapter, policy)
    # A worker that dies is blamed on the example it was scoring. A batch adapter's worker therefore asks for no
    # batch but that example's; the other workers are asking meanwhile.
    alone = run.is_worker and not engine.streams
    engine.plan(batches, (lambda: None) if alone else ahead)
    recorder: Any = run.config.pluginmanager.getplugin("lmeval-recorder")
    if recorder is not None:
        engine.on_wait = lambda: recorder.waiting(min(engine.outstanding, engine.policy.own_concurrency))
    return engine


def _budget(run: RunState) -> float | None:
    limit: float | None = run.config.option.lm_max_cost
    # What the interrupted run spent counts.
    spent = sum(result.usage.get("cost", 0.0) for result in run.held.results.values())
    return None if limit is None else max(0.0, limit - spent)
