"""A server gets the requests of one task one after another, so that what they begin with is still in its cache."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.adapters.openai.scripted_server import Exchange, ScriptedServer, says, serving
from tests.conftest import Project

TASKS, EXAMPLES = "abc", 48


async def _reply(exchange: Exchange) -> None:
    # Some take three times as long as others, as answers of several lengths do.
    number = int(exchange.seen.json["messages"][-1]["content"].rpartition(" ")[2])
    await asyncio.sleep(0.004 * (1 + number % 3))
    await says("yes")(exchange)


@pytest.fixture
def server(project: Project) -> Iterator[ScriptedServer]:
    for task in TASKS:
        records = [project.record(f"e{n}", f"{task} {n}", target="yes") for n in range(EXAMPLES)]
        project.task(f"tasks/{task}.jsonl", *records)
    with serving([_reply]) as server:
        yield server


def _places(project: Project, server: ScriptedServer, *options: str) -> list[tuple[int, int]]:
    """Return the place of each request in the order of the files, and the place in which it came."""
    address = f"--lm-adapter-arg=base_url='{server.base_url}'"
    project.run_pytest("--lm-adapter=openai:m", address, *options).assert_outcomes(passed=len(TASKS) * EXAMPLES)
    prompts = [seen.json["messages"][-1]["content"].rpartition("say: ")[2].split() for seen in server.requests]
    found = [TASKS.index(task) * EXAMPLES + int(number) for task, number in prompts]
    assert sorted(found) == [*range(len(TASKS) * EXAMPLES)]
    return [(place, came) for came, place in enumerate(found)]


def test_requests_come_in_the_order_of_the_files(project: Project, server: ScriptedServer) -> None:
    asked = _places(project, server, "--lm-concurrency=8")
    # Those under way at once overtake one another, and no others.
    assert 8 > max(abs(place - came) for place, came in asked)


def test_workers_ask_parts_of_the_same_task(project: Project, server: ScriptedServer) -> None:
    asked = _places(project, server, "-n2", "--lm-concurrency=8", "--lm-batch-size=4")
    # A worker is handed at most so many items ahead of what the other one is at.
    held = 2 * (4 + 4)
    assert 2 * held > max(abs(place - came) for place, came in asked)
