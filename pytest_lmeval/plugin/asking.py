"""How the options and the ini file set the run of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.plugin.private import is_worker, worker_input
from pytest_lmeval.plugin.settings import gate_mode, ini_thresholds

if TYPE_CHECKING:
    from pytest_lmeval.run.settings import RunSettings

__all__ = ["run_settings"]


def run_settings(config: pytest.Config) -> RunSettings:
    """Return how this process is to ask and score."""
    from pytest_lmeval.run.settings import RunSettings

    option = config.option
    return RunSettings(
        batch_size=option.lm_batch_size,
        concurrency=option.lm_concurrency,
        timeout_s=option.lm_timeout,
        retries=option.lm_retries,
        max_cost=option.lm_max_cost,
        repeats=option.lm_repeats,
        thresholds=dict(option.lm_threshold),
        default_thresholds=ini_thresholds(config),
        gate=gate_mode(config),
        sandbox=option.lm_sandbox,
        packages=config.getini("lm_sandbox_packages"),
        share=worker_input(config).get("workercount", 1),
        passthrough=(pytest.exit.Exception,),
        may_crash=is_worker(config),
        reuses=option.lm_resume,
    )
