"""Runs on a real cluster of three nodes: whatever happens to replicas, the items stay what they are."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from tests.adapters.ray.conftest import is_running, options, pids, spec
from tests.conftest import PATIENCE_S, Project

pytestmark = [pytest.mark.slow, pytest.mark.command_line]


def ended(project: Project) -> bool:
    """Wait until no process of a model is there any more."""
    deadline = time.monotonic() + 60
    while any(map(is_running, pids(project))):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def write_prompts(project: Project, count: int, *others: str) -> None:
    project.prompts(*others, *[f"say: {number}" for number in range(count)])
    text = (project.path / "tasks/t.jsonl").read_text()
    project.write("tasks/t.jsonl", text.replace('"targets": ["say: ', '"targets": ["'))


def test_the_digest_and_the_name_are_those_of_one_process(spread: Project) -> None:
    write_prompts(spread, 40)
    done = spread.run("tasks", "--lm-include-per-example")
    assert 0 == done.ret, done.outlines
    board = spread.board()
    model = board["manifest"]["model"]
    assert (0, 40) == (model["deaths"], board["counts"]["scored"])
    assert 1 <= len(model["replicas"]) <= 2
    assert ended(spread)
    alone = spread.run_pytest("tasks", "--lm-adapter=remote:Model", "--lm-report-dir=alone")
    assert 0 == alone.ret, alone.outlines
    other = spread.board("alone")
    for key in ("digest", "adapter", "adapter_options"):
        assert other[key] == board[key]
    # A cache that one filled serves the other.
    for adapter, folder in ((spec(), "first"), (["--lm-adapter=remote:Model"], "second")):
        given = options(replicas=1) if adapter == spec() else []
        ran = spread.run_pytest(*adapter, *given, "tasks", "--lm-cache=cache", f"--lm-report-dir={folder}")
        assert 0 == ran.ret, ran.outlines
    assert 40 == spread.board("second")["manifest"]["cache"]["hits"]


def test_a_request_that_kills_its_process_is_an_error_of_its_example_alone(spread: Project) -> None:
    write_prompts(spread, 20, "poison say: x")
    done = spread.run("tasks", "--lm-include-per-example")
    counts = spread.board()["counts"]
    assert (20, 1) == (counts["scored"], counts["errors"]), done.outlines
    assert 2 == spread.board()["manifest"]["model"]["deaths"]
    assert "two replicas died with this request" in spread.examples()["t:e0"]["error"]


def test_a_killed_replica_costs_no_example(spread: Project) -> None:
    write_prompts(spread, 40)
    run = spread.start(*spread.usual, "--lm-adapter-arg", "sleep=0.3", "tasks")
    run.wait_for(lambda: len(spread.asked()) > 2)
    os.kill(spread.asked()[0][0], signal.SIGKILL)
    assert 0 == run.process.wait(PATIENCE_S), (spread.path / "output.txt").read_text()
    board = spread.board()
    assert (40, 1) == (board["counts"]["scored"], board["manifest"]["model"]["deaths"])


def test_a_killed_node_costs_no_example(spread: Project, cluster: Any) -> None:
    write_prompts(spread, 60)
    arguments = [*spec(), *options(replicas=8), "--lm-adapter-arg", "sleep=0.3", "tasks"]
    run = spread.start(*arguments)
    run.wait_for(lambda: len(spread.asked()) > 4)
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    try:
        assert 0 == run.process.wait(PATIENCE_S), (spread.path / "output.txt").read_text()
        assert 60 == spread.board()["counts"]["scored"]
    finally:
        cluster.add_node(num_cpus=3)


def test_a_run_begins_with_the_first_replica_that_is_ready(spread: Project) -> None:
    spread.write("slow", "600")
    write_prompts(spread, 10)
    done = spread.run("tasks")
    assert 0 == done.ret, done.outlines
    assert 1 == len(spread.board()["manifest"]["model"]["replicas"])
    assert ended(spread)


def test_another_model_on_one_node_is_refused_and_reported(spread: Project) -> None:
    spread.write("other", "")
    write_prompts(spread, 60)
    done = spread.run("tasks", "--lm-adapter-arg", "sleep=0.3")
    assert 0 == done.ret, done.outlines
    model = spread.board()["manifest"]["model"]
    assert 1 == len(model["replicas"])
    assert "another model on pid" in model["remarks"][0]
    assert "fingerprint is" in model["remarks"][0]
    files = [(spread.path / "reports" / name).read_text() for name in ("leaderboard.md", "report.html")]
    for report in (done.stdout.str(), *files):
        assert "a replica was refused: another model on pid" in report


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (options(replicas=40), "40 replicas with 1 CPU each need 40 CPUs; the cluster has 9 CPUs on 4 node(s), room"),
        (options(replicas=1, fails="'too large'"), "cannot be created: MemoryError: too large"),
        (options(replicas=1, address="127.0.0.1:1"), "no Ray cluster at address=127.0.0.1:1"),
        (options(replicas=1, nothing=1), "unexpected keyword argument 'nothing'"),
    ],
    ids=["too few", "does not fit", "no cluster", "unknown option"],
)
def test_what_cannot_be_started_ends_the_run_before_the_first_request(
    spread: Project, given: list[str], expected: str
) -> None:
    write_prompts(spread, 2)
    done = spread.run_pytest(*spec(), *given, "tasks")
    assert 4 == done.ret, done.outlines
    assert expected in " ".join([*done.outlines, *done.errlines])
    assert [] == spread.asked()


def test_a_late_answer_is_dropped(spread: Project) -> None:
    write_prompts(spread, 10, "hang say: x")
    done = spread.run("tasks", "--lm-adapter-arg", "wait_s=20", "--lm-adapter-arg", "batch_size=2")
    assert 0 == spread.board()["counts"]["errors"], done.outlines
    assert (11, 1) == (spread.board()["counts"]["scored"], spread.board()["manifest"]["model"]["deaths"])


def test_a_run_that_was_killed_leaves_no_actor_and_is_resumed(spread: Project) -> None:
    write_prompts(spread, 40)
    run = spread.start(*spread.usual, "--lm-adapter-arg", "sleep=0.3", "--lm-adapter-arg", "batch_size=2", "tasks")
    run.wait_for(lambda: len(spread.asked()) > 8)
    run.stop(signal.SIGKILL)
    assert ended(spread)
    # With another number of replicas: they are not what the answers depend on.
    done = spread.run_pytest(*spec(), *options(replicas=1, sleep=0.3), "tasks", "--lm-resume")
    assert 0 == done.ret, done.outlines
    assert 40 == spread.board()["counts"]["scored"]


def test_ctrl_c_leaves_no_actor(spread: Project) -> None:
    write_prompts(spread, 40)
    run = spread.start(*spread.usual, "--lm-adapter-arg", "sleep=0.3", "tasks")
    run.wait_for(lambda: len(spread.asked()) > 2)
    code, output = run.stop(signal.SIGINT)
    assert 2 == code, output
    assert ended(spread)


def test_a_run_stops_before_it_costs_more_than_it_may(spread: Project) -> None:
    write_prompts(spread, 40)
    done = spread.run_pytest(*spec("remote:Paid"), *options(replicas=2), "tasks", "--lm-max-cost=5")
    assert 3 == done.ret, done.outlines
    assert len(spread.asked()) <= 5


def test_two_runs_share_a_cluster(spread: Project) -> None:
    write_prompts(spread, 20)
    first = spread.start(*spread.usual, "--lm-adapter-arg", "sleep=0.3", "--lm-report-dir=first", "tasks")
    second = spread.run("tasks", "--lm-report-dir=second")
    assert (0, 0) == (second.ret, first.process.wait(PATIENCE_S)), second.outlines
    assert spread.board("first")["digest"] == spread.board("second")["digest"]


def test_eight_replicas_are_nearly_eight_times_as_fast(spread: Project) -> None:
    from pytest_lmeval import run_leaderboard
    from pytest_lmeval.loading import load_tasks, make_adapter

    walls = {}
    for replicas, examples in ((1, 20), (8, 160)):
        write_prompts(spread, examples)
        given = {"num_gpus": 0, "num_cpus": 1, "replicas": replicas, "sleep": 1.0, "address": "auto"}
        adapter = make_adapter("ray:remote:Model", options=given, project=spread.path)
        deadline = time.monotonic() + PATIENCE_S
        while len(adapter.manifest["replicas"]) < replicas and time.monotonic() < deadline:
            time.sleep(0.1)
        started = time.monotonic()
        board = run_leaderboard(load_tasks(spread.path / "tasks"), adapter)
        walls[replicas] = time.monotonic() - started
        assert examples == board.counts["scored"]
        adapter.close()
    assert walls[1] / walls[8] >= 0.9, walls
