"""A real cluster of three nodes on this machine, and models for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests import needs
from tests.conftest import Project

# What the model does is in its prompts: sleep, or end the process. The folder says what happens at its start.
MODEL = """
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


class Model:
    name = "remote.v1"
    fingerprint = "one"

    def __init__(self, sleep=0.0, fails=""):
        if fails:
            raise MemoryError(fails)
        self._sleep = sleep
        number = len(list(HERE.glob("started-*")))
        (HERE / f"started-{os.getpid()}").touch()
        if number and (HERE / "slow").exists():
            time.sleep(float((HERE / "slow").read_text()))
        if number and (HERE / "other").exists():
            self.fingerprint = f"other-{os.getpid()}"

    def generate(self, prompts):
        time.sleep(self._sleep * len(prompts))
        for prompt in prompts:
            with open(HERE / "asked.txt", "a") as file:
                file.write(f'[{os.getpid()}, "{prompt}"]\\n')
            if "poison" in prompt:
                os._exit(9)
            if "hang" in prompt and not (HERE / "hung").exists():
                (HERE / "hung").touch()
                time.sleep(6)
        return [prompt.rpartition("say: ")[2] for prompt in prompts]


class Paid(Model):
    def generate(self, prompts):
        raise NotImplementedError

    def generate_requests(self, requests):
        from pytest_lmeval.types import Completion

        texts = Model.generate(self, [request.text for request in requests])
        return [Completion(text, cost=1.0) for text in texts]
"""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Provide a cluster of a head without processors and three nodes of three."""
    needs.module("ray", "ray", "needs Ray (.[ray])")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(3):
        made.add_node(num_cpus=3)
    yield made
    made.shutdown()


@pytest.fixture
def spread(project: Project, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide a project whose runs ask two replicas of its model on the cluster."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    project.write("remote.py", MODEL)
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


__all__ = ["MODEL", "is_running", "options", "os", "pids", "spec"]
