"""How the options and the ini file set the run of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.settings import gate_mode, ini_thresholds

if TYPE_CHECKING:
    from pytest_lmeval.redaction import Scrubber
    from pytest_lmeval.run.settings import RunSettings

__all__ = ["run_scrubber", "run_settings"]


def run_settings(config: pytest.Config, scrubber: Scrubber) -> RunSettings:
    """Return how this process is to ask and score, and which secrets results may not show."""
    from pytest_lmeval.run.settings import RunSettings

    option = config.option
    worker = getattr(config, "workerinput", None)
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
        share=1 if worker is None else worker.get("workercount", 1),
        passthrough=(pytest.exit.Exception,),
        may_crash=worker is not None,
        reuses=option.lm_resume,
        scrubber=scrubber,
    )


def run_scrubber(config: pytest.Config, adapter: str) -> Scrubber:
    """Return what hides the secrets among the options of the adapter and of the judge."""
    from pytest_lmeval.redaction import Scrubber

    option = config.option
    if not (adapter or option.lm_judge):
        return Scrubber()
    from pytest_lmeval.adapters.resolve import scrubber_of

    specs = {option.lm_judge or "": {}, adapter: dict(option.lm_adapter_arg)}
    try:
        return scrubber_of(specs, config.rootpath)
    except LmevalError:  # of a profile that cannot be read: making the adapter says so
        return scrubber_of(specs, None)
