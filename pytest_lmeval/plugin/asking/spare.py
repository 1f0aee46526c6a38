"""Begins the processes that ask models while pytest collects: meanwhile they import an HTTP client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.private.workers import is_worker
from pytest_lmeval.plugin.settings.models import SPARES
from pytest_lmeval.plugin.settings.settings import spec_of

if TYPE_CHECKING:
    import pytest


def begin_spares(config: pytest.Config) -> None:
    """Begin a process for each model that needs one by its spec, once in a session; the end of it ends unused ones.

    Call it when a task is found: a session without tasks starts no process.
    """
    option = config.option
    # A worker has only a part of the requests in flight; under a limit on cost no process asks for this one.
    is_alone = is_worker(config) or option.lm_max_cost is not None
    if SPARES in config.stash or is_alone or option.collectonly or config.getoption("setuponly", False):
        return
    from pytest_lmeval.adapters.resolve import server_kind

    specs = [spec for _, spec in option.lm_models] or [spec_of(config)]
    try:
        kinds = [kind for spec in specs if (kind := server_kind(spec, config.rootpath))]
    except LmevalError:  # of a profile that cannot be read: making the adapter says so
        kinds = []
    from pytest_lmeval.asking.hosting import Spares

    client = "pytest_lmeval.adapters.http.transport"
    spares = config.stash[SPARES] = Spares([(f"pytest_lmeval.adapters.{kind}.adapter", client) for kind in kinds])
    config.add_cleanup(spares.close)
