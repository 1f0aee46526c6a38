"""The adapter ``ray:SPEC``, which runs copies of the model SPEC on the nodes of a Ray cluster.

The run stays in one process. In this process, :mod:`.adapter` receives the run's requests, :mod:`.pool` manages the
copies (replicas), and :mod:`.sharing` distributes the requests among the replicas. Here, only :mod:`.cluster` uses Ray.
"""

from __future__ import annotations

from pytest_lmeval.adapters.ray.adapter import RayAdapter, make

__all__ = ["RayAdapter", "make"]
