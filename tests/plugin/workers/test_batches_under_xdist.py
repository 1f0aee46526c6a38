"""A batch is asked once, by one process, however many workers there are."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


def write_tasks(project: Project, files: int, examples: int) -> None:
    for number in range(files):
        records = [project.record(f"e{n}", f"{number}/{n}") for n in range(examples)]
        project.task(f"tasks/t{number}.jsonl", *records)


def take_calls(project: Project) -> tuple[list[list[str]], int]:
    """Return the batches that were asked since the last look, sorted, and how many processes asked."""
    path = project.path / "calls.txt"
    calls: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return sorted(prompts for _, prompts in calls), len({process for process, _ in calls})


def test_300_examples_are_asked_in_the_same_39_batches_by_two_workers(project: Project) -> None:
    write_tasks(project, files=3, examples=100)
    project.run().assert_outcomes(passed=300)
    serial, _ = take_calls(project)
    project.run("-n2").assert_outcomes(passed=300)
    parallel, processes = take_calls(project)
    assert 39 == len(serial)
    assert serial == parallel
    assert 2 == processes


@pytest.mark.parametrize(("size", "expected"), [(3, 8), pytest.param(50, 2, marks=pytest.mark.again)])
def test_the_batch_size_bounds_a_call(project: Project, size: int, expected: int) -> None:
    write_tasks(project, files=2, examples=10)
    project.run("-n2", f"--lm-batch-size={size}").assert_outcomes(passed=20)
    batches, _ = take_calls(project)
    assert expected == len(batches)
    # Batches never mix tasks.
    assert {1} == {len({prompt.partition("/")[0] for prompt in batch}) for batch in batches}
    assert min(size, 10) == max(map(len, batches))
    assert 20 == len({prompt for batch in batches for prompt in batch})


@pytest.mark.again
def test_batches_hold_the_selected_examples_alone(project: Project) -> None:
    write_tasks(project, files=2, examples=20)
    selection = ["-k", "e1 or e5", "--deselect", "tasks/t1.jsonl::e15"]
    project.run("--lm-batch-size=4", *selection)
    serial, _ = take_calls(project)
    project.run("--lm-batch-size=4", "-n2", *selection)
    parallel, _ = take_calls(project)
    assert serial == parallel
    by_file = defaultdict(list)
    for batch in serial:
        by_file[batch[0].partition("/")[0]].append(len(batch))
    assert {"say: 0": [4, 4, 4], "say: 1": [3, 4, 4]} == {key: sorted(sizes) for key, sizes in by_file.items()}


@pytest.mark.parametrize(
    "dist", ["worksteal", *(pytest.param(dist, marks=pytest.mark.again) for dist in ("loadfile", "each"))]
)
def test_other_ways_to_distribute_lose_nothing(project: Project, dist: str) -> None:
    write_tasks(project, files=3, examples=9)
    result = project.run("-n2", f"--dist={dist}", "--lm-batch-size=4")
    assert 0 == result.ret
    board = project.board()
    assert board["complete"]
    assert (27, 27) == (board["counts"]["collected"], board["counts"]["scored"])
