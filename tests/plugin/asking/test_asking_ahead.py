"""Requests are on their way before their examples are scored: that many, no more, and none after a stop."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from tests.conftest import BOTH, Project


@pytest.fixture
def model(project: Project) -> Project:
    project.copy("asking_ahead", "model.py")
    return project


def write_examples(project: Project, name: str, number: int, **extras: str) -> None:
    project.task(f"tasks/{name}.jsonl", *[project.record(f"e{n}", f"{name}{n}", **extras) for n in range(number)])


def events(project: Project, kind: str) -> list[list[object]]:
    """Return the details of the events of a kind, in order."""
    return [event[2:] for event in project.asked("events.txt") if event[0] == kind]


SLOW_METRIC = """
import os, time

def next_batch_has_begun(prediction, targets, extras):
    number = int(prediction[1:])
    if number % 4 or number == 8:
        return 1.0
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if os.path.exists(os.path.join(os.path.dirname(__file__), f"begun-t{number + 4}")):
            return 1.0
        time.sleep(0.01)
    return 0.0

def pytest_lmeval_register(registry):
    registry.add_metric("next_batch_has_begun", next_batch_has_begun)
"""


def test_the_next_batch_is_generated_while_the_first_example_of_this_one_is_scored(model: Project) -> None:
    model.write("conftest.py", SLOW_METRIC)
    write_examples(model, "t", 12, metric="next_batch_has_begun")
    model.run_pytest("--lm-adapter=model:Batch", "--lm-batch-size=4").assert_outcomes(passed=12)
    assert 3 == len(events(model, "batch"))


@pytest.mark.parametrize("concurrency", [1, 16])
def test_so_many_requests_are_in_flight_across_task_files(model: Project, concurrency: int) -> None:
    for name in "abcd":
        write_examples(model, name, 8)
    options = [f"--lm-concurrency={concurrency}", f"--lm-adapter-arg=wanted={concurrency}"]
    model.run_pytest("--lm-adapter=model:Crowd", *options).assert_outcomes(passed=32)
    assert [[concurrency]] == events(model, "peak")


def test_workers_share_the_concurrency_out(model: Project) -> None:
    write_examples(model, "t", 200)
    options = ["-n2", "--lm-concurrency=8", "--lm-adapter-arg=wanted=4"]
    model.run_pytest("--lm-adapter=model:Crowd", *options).assert_outcomes(passed=200)
    assert [[4], [4]] == events(model, "peak")


@pytest.mark.parametrize(
    ("adapter", "option", "window"),
    [("Batch", "--lm-batch-size=8", 2 * 8), ("Async", "--lm-concurrency=8", 4 * 8 + 1)],
    ids=["batch", "async"],
)
def test_what_is_asked_and_not_yet_scored_stays_within_the_window(
    project: Project, adapter: str, option: str, window: int
) -> None:
    project.copy("asking_ahead", "counting.py")
    project.write("pyproject.toml", '[tool.lmeval]\nplugins = ["counting"]\n')
    for name in ("a", "b"):
        write_examples(project, name, 200, metric="counted")
    result = project.run_pytest(f"--lm-adapter=counting:{adapter}", option, "-q", "-q")
    assert 0 == result.ret
    asked, scored, most = map(int, (project.path / "most.txt").read_text().split())
    assert (400, 400) == (asked, scored)
    assert 8 < most <= window


@pytest.mark.parametrize(("option", "processes"), [("-x", "-n0"), ("--maxfail=1", "-n2")])
def test_a_run_that_stops_at_a_failure_asks_no_more(model: Project, option: str, processes: str) -> None:
    words = ["wrong" if number == 1 else f"w{number}" for number in range(200)]
    model.task("tasks/t.jsonl", *[model.record(f"e{n}", word, target=f"w{n}") for n, word in enumerate(words)])
    result = model.run_pytest("--lm-adapter=model:Slow", "--lm-concurrency=4", option, processes)
    assert result.ret in (1, 2 if processes == "-n2" else 1)
    # What was in flight as the failure was found, and what went out until the run had heard of it: far from all 200.
    assert len(events(model, "asked")) <= 40
    assert not model.board()["complete"]
    assert 200 == model.board()["counts"]["collected"]


@pytest.mark.parametrize("processes", BOTH)
def test_ctrl_c_ends_a_run_with_requests_in_flight(model: Project, processes: str) -> None:
    write_examples(model, "t", 200)
    started = model.start("--lm-adapter=model:Stuck", "--lm-concurrency=4", processes)
    started.wait_for(lambda: len(events(model, "asked")) >= 6)
    code, output = started.stop(signal.SIGINT, group=True)  # as a terminal does
    assert 2 == code, output
    assert "Traceback" not in output
    board = model.board()
    assert not board["complete"]
    assert 200 == board["counts"]["collected"]
    assert len(events(model, "asked")) <= 8


SKIPPING = """
import pytest

@pytest.fixture(autouse=True)
def skip_some(request):
    if SKIPPED(int(request.node.name.removeprefix("e"))):
        pytest.skip("not today")
"""


def test_an_example_whose_turn_has_passed_is_not_asked(model: Project) -> None:
    model.write("conftest.py", SKIPPING.replace("SKIPPED", "(100).__gt__"))
    write_examples(model, "t", 120)
    model.run_pytest("--lm-adapter=model:Gauge").assert_outcomes(passed=20, skipped=100)
    assert [f"e{n}" for n in range(100, 120)] == [id for id, _ in events(model, "asked")]


def test_examples_that_are_skipped_do_not_use_the_window_up(model: Project) -> None:
    model.write("conftest.py", SKIPPING.replace("SKIPPED", "(lambda number: number % 3 < 2)"))
    write_examples(model, "t", 120)
    model.run_pytest("--lm-adapter=model:Gauge", "--lm-concurrency=4").assert_outcomes(passed=40, skipped=80)
    late = [int(str(in_flight)) for id, in_flight in events(model, "asked") if int(str(id)[1:]) > 80]
    assert 4 == max(late)


def test_requests_go_out_in_the_order_of_the_examples_and_only_for_those_selected(model: Project) -> None:
    write_examples(model, "t", 20)
    model.write("test_plain.py", "def test_plain(): pass\n")
    deselected = ["--deselect", "tasks/t.jsonl::e7", "-k", "not e3 and not e12"]
    model.run_pytest("--lm-adapter=model:Mortal", "--lm-concurrency=2", *deselected).assert_outcomes(
        passed=18, deselected=3
    )
    assert [[f"e{n}"] for n in range(20) if n not in (3, 7, 12)] == events(model, "asked")


def test_a_worker_that_dies_once_costs_what_it_was_scoring_and_no_more(model: Project) -> None:
    write_examples(model, "t", 60)
    result = model.run_pytest(
        "--lm-adapter=model:Mortal", "-n2", "--lm-batch-size=4", "--lm-concurrency=8", "--lm-include-per-example"
    )
    assert 3 == result.ret
    board = model.board()
    assert (60, 59, 1) == tuple(board["counts"][key] for key in ("collected", "scored", "missing"))
    assert all(record["status"] == "passed" for record in model.examples().values())
    assert max(Counter(str(id) for (id,) in events(model, "asked")).values()) <= 2
