"""The examples between the first and the last of a file run their call alone, and nobody who needs more sees less."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

METRIC = """
import logging, os, sys

from pytest_lmeval.types import Metric

def loud(prediction, targets, extras):
    print("printed for", prediction)
    logging.getLogger("loud").warning("logged for %s", prediction)
    print(os.environ["PYTEST_CURRENT_TEST"], file=sys.stderr)
    return float(prediction in targets)

def pytest_lmeval_register(registry):
    registry.metrics["loud"] = Metric("loud", loud)
"""
MARKED = """
import pytest
def pytest_collection_modifyitems(items): items[1].parent.add_marker(pytest.mark.usefixtures())
"""
SHARED = """
import pytest
@pytest.fixture(autouse=True, scope="module")
def mine(request):
    print("up", request.node.name)
    yield
    print("down", request.node.name)
"""
ALL_PHASES = "\ndef pytest_runtest_setup(item): pass\n"


def phases(result: pytest.RunResult) -> dict[str, int]:
    """Return how many of each phase a run with --durations=0 -vv had."""
    named = re.findall(r"^\d+\.\d\ds (setup|call|teardown) +tasks/", result.stdout.str(), flags=re.MULTILINE)
    return {phase: named.count(phase) for phase in sorted({*named})}


def right(project: Project, count: int) -> None:
    project.task("tasks/words.jsonl", *(project.record(f"w{number}", "yes") for number in range(count)))


def run_timed(project: Project, *options: str) -> pytest.RunResult:
    return project.run("--durations=0", "-vv", *options)


def test_the_first_and_the_last_of_a_file_are_set_up_and_torn_down(project: Project) -> None:
    project.prompts(*(f"say: {number}" for number in range(5)), target="1")
    result = run_timed(project)
    result.assert_outcomes(passed=1, failed=4)
    assert {"call": 5, "setup": 2, "teardown": 2} == phases(result)


@pytest.mark.parametrize(
    ("conftest", "options"),
    [
        (ALL_PHASES, ()),
        ("def pytest_runtest_teardown(item): pass", ()),
        ("def pytest_runtest_call(item): pass", ()),
        ("def pytest_runtest_logreport(report): pass", ()),
        ("def pytest_runtest_makereport(item, call): pass", ()),
        ("import pytest\n\n@pytest.fixture(autouse=True)\ndef mine(): yield", ()),
        (MARKED, ()),
        ("", ("--junitxml=junit.xml",)),
        ("", ("--json-report",)),
        ("", ("--pdb",)),
        ("", ("--setup-show",)),
    ],
    ids=str,
)
def test_whoever_needs_all_phases_gets_them(project: Project, conftest: str, options: tuple[str, ...]) -> None:
    right(project, 4)
    project.write("conftest.py", conftest)
    assert {"call": 4, "setup": 4, "teardown": 4} == phases(run_timed(project, *options))


def test_a_mark_of_pytest_is_heeded_between_others(project: Project) -> None:
    project.prompts("say: 1", "say: 2", "say: 3", "say: 4", target="1")
    mark = "items[{}].add_marker(pytest.mark.{})"
    marks = f"{mark.format(1, 'skip')}; {mark.format(2, 'xfail')}"
    project.write("conftest.py", f"import pytest\ndef pytest_collection_modifyitems(items): {marks}\n")
    run_timed(project).assert_outcomes(passed=1, skipped=1, xfailed=1, failed=1)


def said(result: pytest.RunResult) -> list[str]:
    """Return what a run printed, without its times and the list of durations."""
    text, _, _ = result.stdout.str().partition("slowest durations")
    return [re.sub(r"\d+\.\d+ ?m?s|\d+\.\d$", "TIME", line) for line in text.splitlines()]


def test_a_failure_shows_what_was_printed_and_logged_for_it_as_with_all_phases(project: Project) -> None:
    project.task(
        "tasks/words.jsonl", *(project.record(f"w{number}", "no", "yes", metric="loud") for number in range(4))
    )
    project.write("conftest.py", METRIC)
    alone = run_timed(project)
    project.write("conftest.py", METRIC + ALL_PHASES)
    whole = run_timed(project)
    assert said(whole) == said(alone)
    for section in ("stdout", "log", "stderr"):
        assert 4 == alone.stdout.str().count(f" Captured {section} call ")
    assert 4 == alone.stdout.str().count("(call)\n")


def test_a_run_that_stops_between_two_examples_tears_the_file_down(project: Project) -> None:
    project.prompts("say: 1", "say: 2", "say: 3", "say: 4", "say: 5", target="1")
    project.write("conftest.py", SHARED)
    result = run_timed(project, "--maxfail=2", "-s")
    result.assert_outcomes(passed=1, failed=2)
    assert 1 == result.stdout.str().count("down t.jsonl")


def test_the_next_file_is_set_up_by_itself(project: Project) -> None:
    project.small_tasks()
    project.write("conftest.py", SHARED)
    result = run_timed(project, "-s")
    result.assert_outcomes(passed=4, failed=1)
    first, second = "arithmetic.jsonl", "words.jsonl"
    steps = re.findall(r"(?:up|down) \w+\.jsonl", result.stdout.str())
    assert [f"up {first}", f"down {first}", f"up {second}", f"down {second}"] == steps


def test_the_name_of_the_running_test_is_gone_after_it(project: Project) -> None:
    right(project, 3)
    check = "def pytest_runtest_logfinish(): assert 'PYTEST_CURRENT_TEST' not in os.environ"
    project.write("conftest.py", f"import os\n{check}\n")
    run_timed(project).assert_outcomes(passed=3)


def test_workers_run_all_phases(project: Project) -> None:
    right(project, 4)
    assert {"call": 4, "setup": 4, "teardown": 4} == phases(run_timed(project, "-n1"))
