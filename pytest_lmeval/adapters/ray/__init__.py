"""The adapter ``ray:SPEC``: copies of the model SPEC on the machines of a Ray cluster.

The run stays in one process. :mod:`.adapter` receives the run's requests, :mod:`.pool` manages the copies, which are
called replicas, and :mod:`.sharing` distributes the requests to them. Only :mod:`.cluster` uses Ray.
"""

from __future__ import annotations

from pytest_lmeval.adapters.ray.adapter import RayAdapter, make

__all__ = ["RayAdapter", "make"]
