"""The scheduler hands out whole batches, never loses one in silence, and gives a deadly one up."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_lmeval.plugin.collect.locate import is_example_id
from pytest_lmeval.plugin.workers.scheduling import BatchScheduling

if TYPE_CHECKING:
    from tests.conftest import Project


class FakeNode:
    """A worker as xdist's is: it starts an item once it knows the next one, or that none will come."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.queue: list[int] = []
        self.chunks: list[list[int]] = []
        self.shutting_down = False
        self.is_dead = False

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        assert not self.shutting_down, "work after the shutdown"
        self.chunks.append(list(indices))
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        return len(self.queue) > 1 or (bool(self.queue) and self.shutting_down)


class Simulation:
    """A controller's loop around the scheduler: workers finish items, die and are replaced."""

    def __init__(self, config: pytest.Config, ids: Sequence[str], workers: int, batch_size: int) -> None:
        self.ids = list(ids)
        config.option.tx = [f"{workers}*popen"]
        config.option.lm_batch_size = batch_size
        self.scheduler = BatchScheduling(config)
        self.names = 0
        self.finished: list[str] = []
        self.crashed: list[str] = []
        self.nodes = [self.new_node() for _ in range(workers)]
        assert self.scheduler.collection_is_completed
        self.scheduler.schedule()

    def new_node(self) -> Any:
        self.names += 1
        node: Any = FakeNode(f"gw{self.names}")
        self.scheduler.add_node(node)
        self.scheduler.add_node_collection(node, self.ids)
        return node

    def finish_one(self, node: Any) -> None:
        index = node.queue.pop(0)
        self.finished.append(self.ids[index])
        self.scheduler.mark_test_complete(node, index)

    def crash(self, node: Any, *, replace: bool = True) -> None:
        self.nodes.remove(node)
        crashed = self.scheduler.remove_node(node)
        if crashed is not None:
            self.crashed.append(crashed)
        if replace:
            self.nodes.append(self.new_node())
            self.scheduler.schedule()

    def run(self, deadly: Sequence[str] = ()) -> None:
        for _ in range(10 * len(self.ids) + 10):
            if self.scheduler.tests_finished:
                for node in self.nodes:
                    node.shutdown()
            node = next((node for node in self.nodes if node.can_run), None)
            if node is None:
                break
            if self.ids[node.queue[0]] in deadly:
                self.crash(node)
            else:
                self.finish_one(node)
        assert not self.scheduler.has_pending
        assert self.scheduler.tests_finished


@pytest.fixture
def config(pytester: pytest.Pytester) -> pytest.Config:
    return pytester.parseconfig("--lm-adapter=toy")


# The configuration is only read: the examples of a property may share it.
properties = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def examples(file: str, count: int) -> list[str]:
    return [f"tasks/{file}.jsonl::e{number}" for number in range(count)]


def plain(count: int) -> list[str]:
    return [f"test_plain.py::test_{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [("tasks/a.jsonl::x", True), ("test_a.py::test_x", False), ("test_a.py::test_x[b.jsonl::c]", False)],
)
def test_an_example_is_known_by_its_node_id(nodeid: str, expected: bool, config: pytest.Config) -> None:
    assert expected == is_example_id(nodeid, config)


@properties
@given(
    sizes=st.lists(st.integers(0, 12), max_size=4),
    tests=st.integers(0, 8),
    workers=st.integers(1, 4),
    batch_size=st.integers(1, 9),
)
def test_every_item_runs_once_and_every_batch_in_one_place(
    config: pytest.Config, sizes: list[int], tests: int, workers: int, batch_size: int
) -> None:
    ids = [nodeid for number, size in enumerate(sizes) for nodeid in examples(f"t{number}", size)] + plain(tests)
    if not ids:
        return
    simulation = Simulation(config, ids, workers, batch_size)
    nodes = list(simulation.nodes)
    simulation.run()
    assert sorted(ids) == sorted(simulation.finished)
    for number, size in enumerate(sizes):
        start = sum(sizes[:number])
        for first in range(start, start + size, batch_size):
            batch = set(range(first, min(first + batch_size, start + size)))
            homes = [node for node in nodes if batch & {index for chunk in node.chunks for index in chunk}]
            assert 1 == len(homes)


@properties
@given(data=st.data(), count=st.integers(1, 20), batch_size=st.integers(1, 6), workers=st.integers(1, 3))
def test_workers_that_die_cost_their_item_and_no_item_is_lost_twice(
    config: pytest.Config, data: st.DataObject, count: int, batch_size: int, workers: int
) -> None:
    ids = [*examples("a", count), *plain(3)]
    deadly = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=3))
    simulation = Simulation(config, ids, workers, batch_size)
    simulation.run(deadly)
    assert len(simulation.finished) == len(set(simulation.finished))
    assert not set(simulation.finished) & set(simulation.crashed)
    assert set(simulation.crashed) <= set(deadly)
    lost = set(ids) - set(simulation.finished) - set(simulation.crashed)
    for nodeid in lost:
        batch = ids.index(nodeid) // batch_size
        companions = ids[batch * batch_size : min((batch + 1) * batch_size, count)]
        assert 2 == len(set(companions) & set(simulation.crashed)), "given up without a second crash"


def test_a_worker_that_died_idle_cost_nothing(config: pytest.Config) -> None:
    simulation = Simulation(config, examples("a", 4), workers=2, batch_size=4)
    idle = next(node for node in simulation.nodes if not node.queue)
    simulation.crash(idle, replace=False)
    simulation.run()
    assert [] == simulation.crashed
    assert 4 == len(simulation.finished)


def test_workers_that_collected_different_items_are_refused(config: pytest.Config) -> None:
    config.option.tx = ["2*popen"]
    scheduler = BatchScheduling(config)
    for name, ids in (("gw0", examples("a", 2)), ("gw1", examples("a", 3))):
        node: Any = FakeNode(name)
        scheduler.add_node(node)
        scheduler.add_node_collection(node, ids)
    with pytest.raises(pytest.UsageError, match="gw1"):
        scheduler.schedule()


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("reported", [0, 1, 18])
def test_a_worker_that_died_before_xdist_heard_of_it_costs_at_most_what_it_had_begun(
    config: pytest.Config, reported: int, replace: bool
) -> None:
    run = Simulation(config, examples("a", 60), workers=2, batch_size=2)
    dying = run.nodes[0]
    dying.is_dead = True
    begun = list(dying.queue)
    # What it finished before it died is heard of first; each time the scheduler wants to send it more.
    for _ in range(min(reported, len(begun))):
        run.finish_one(dying)
    run.crash(dying, replace=replace)
    run.run()

    assert run.crashed == [run.ids[index] for index in begun[reported : reported + 1]]
    assert sorted(run.ids) == sorted(run.finished + run.crashed)


# A real worker that dies whenever it sees the word.

DEADLY = """
import os, signal
from model import Model

class Deadly(Model):
    def answer(self, prompt):
        if "boom" in prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(prompt)
"""


@pytest.fixture
def deadly(project: Project) -> Project:
    project.write("deadly.py", DEADLY)
    words = ["w0", "w1", "boom", "w3", *[f"w{number}" for number in range(4, 16)]]
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", word) for number, word in enumerate(words)])
    project.write("test_plain.py", "def test_plain(): pass\n")
    return project


@pytest.mark.parametrize("restarts", [[], ["--max-worker-restart=0"]])
def test_a_batch_that_kills_every_worker_is_lost_and_named_and_the_rest_is_scored(
    deadly: Project, restarts: list[str]
) -> None:
    result = deadly.run_pytest("--lm-adapter=deadly:Deadly", "-n2", "--lm-batch-size=4", *restarts)
    assert 3 == result.ret
    board = deadly.board()
    assert not board["complete"]
    assert board["overall_score"] is None
    assert "incomplete" == board["gate"]["verdict"]
    lost = {f"tasks/t.jsonl::e{number}" for number in range(4)}
    named = {reason.rpartition(" ")[2] for reason in board["gate"]["reasons"]}
    assert lost <= named
    if not restarts:
        assert lost == named
    assert len(named) == board["counts"]["missing"]
    assert all(nodeid in result.stdout.str() for nodeid in named)
