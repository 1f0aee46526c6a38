"""Begins the processes that ask models while pytest collects: they import what a client needs, which takes as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.plugin.settings.models import ENVIRONMENT, SPARE
from pytest_lmeval.plugin.settings.settings import spec_of

if TYPE_CHECKING:
    import pytest


def begin_spares(config: pytest.Config) -> None:
    """Begin one for each model that is asked by one, as far as its spec says so; what nobody takes is ended."""
    specs = [spec for _, spec in config.option.lm_models] or [spec_of(config)]
    wanted = [modules for spec in specs if (modules := _modules_of(spec, config))]
    if wanted:
        from pytest_lmeval.asking.hosting import Spares

        spares = Spares(wanted)
        config.stash[SPARE] = spares.take
        config.add_cleanup(spares.close)


def _modules_of(spec: str, config: pytest.Config) -> Sequence[str]:
    """Return what is imported to ask the model; nothing where it has no server of those that are known."""
    from pytest_lmeval.adapters.resolve import SERVERS, resolve_profile

    try:
        adapter = resolve_profile(spec, {}, config.rootpath, config.stash[ENVIRONMENT]).adapter
    except LmevalError:  # making the adapter says so
        return ()
    kind = adapter.partition(":")[0]
    # What Ray asks is asked in its own processes.
    if kind not in SERVERS or spec.startswith("ray:"):
        return ()
    return f"pytest_lmeval.adapters.{kind}.adapter", "pytest_lmeval.adapters.http.transport"
