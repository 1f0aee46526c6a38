"""A real cluster of three nodes on this machine, and models for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import needs
from tests.conftest import Project


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Provide a cluster of a head without processors and three nodes of three."""
    ray = needs.module("ray", "ray", "needs Ray (.[ray])")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(3):
        made.add_node(num_cpus=3)
    yield made
    ray.shutdown()  # a test may have connected this process, too
    made.shutdown()


@pytest.fixture
def spread(project: Project, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide a project whose runs ask two replicas of its model on the cluster."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    project.copy("ray")
    project.usual = [*spec(), *options(replicas=2)]
    return project


def spec(model: str = "remote:Model") -> list[str]:
    return [f"--lm-adapter=ray:{model}"]


def options(**given: object) -> list[str]:
    """Return the options of the adapter on the command line; a replica needs one processor."""
    own = {"num_gpus": 0, "num_cpus": 1, **given}
    return [part for name, value in own.items() for part in ("--lm-adapter-arg", f"{name}={value}")]


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(project: Project) -> list[int]:
    """Return the processes in which a model was made."""
    return [int(path.name.rpartition("-")[2]) for path in project.path.glob("started-*")]
