"""The adapter ``ray:SPEC``: copies of the model that SPEC names, on the machines of a Ray cluster.

The run stays in one process: :mod:`.adapter` takes its requests, :mod:`.pool` looks after the copies, called replicas,
and :mod:`.sharing` decides which of them gets what. :mod:`.cluster` is what uses Ray.
"""

from __future__ import annotations

from typing import Any

from pytest_lmeval.adapters.ray.adapter import RayAdapter, open_adapter

__all__ = ["RayAdapter", "make"]


def make(argument: str, **options: Any) -> RayAdapter:
    """Return the adapter ``ray:SPEC``."""
    return open_adapter(argument, options)
