"""The examples between the first and the last of a file run their call alone, and nobody who needs more sees less."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.conftest import BOTH

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


COUNTING = """
import pytest

make = pytest.TestReport.from_item_and_call.__func__

def counted(cls, item, call):
    with open("phases.txt", "a") as file:
        file.write(call.when + "\\n")
    return make(cls, item, call)

pytest.TestReport.from_item_and_call = classmethod(counted)
"""


def phases(project: Project) -> dict[str, int]:
    """Return how many reports of each phase a run made."""
    return dict(sorted(Counter((project.path / "phases.txt").read_text().split()).items()))


def right(project: Project, count: int) -> None:
    project.task("tasks/words.jsonl", *(project.record(f"w{number}", "yes") for number in range(count)))


def run_counted(project: Project, *options: str) -> pytest.RunResult:
    project.write("counting.py", COUNTING)
    return project.run("-pcounting", "-vv", *options)


def test_the_first_and_the_last_of_a_file_are_set_up_and_torn_down(project: Project) -> None:
    project.prompts(*(f"say: {number}" for number in range(5)), target="1")
    result = run_counted(project)
    result.assert_outcomes(passed=1, failed=4)
    assert {"call": 5, "setup": 2, "teardown": 2} == phases(project)


@pytest.mark.parametrize("processes", BOTH)
def test_examples_that_fail_after_a_test_that_is_none_of_ours_are_reported(project: Project, processes: str) -> None:
    plain = "def test_plain():\n    pass\n"
    data = "data=[{'n': number} for number in range(5)]"
    code = f"from pytest_lmeval import eval_task\n\n{plain}\n@eval_task('never', {data})\n"
    project.write("tasks/test_a.py", f"{code}def test_never(row):\n    assert row['n'] > 2\n")
    project.write("tasks/test_b.py", plain)
    project.task("tasks/words.jsonl", *(project.record(f"w{number}", "yes", target="no") for number in range(4)))
    project.run("tasks", processes).assert_outcomes(passed=4, failed=7)


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
        ("", ("--durations=3",)),
        ("", ("-olog_cli=true",)),
        ("", ("--lm-items=plain",)),
        ("def pytest_report_teststatus(report, config): pass", ()),
    ],
    ids=str,
)
def test_whoever_needs_all_phases_gets_them(project: Project, conftest: str, options: tuple[str, ...]) -> None:
    right(project, 4)
    project.write("conftest.py", conftest)
    run_counted(project, *options)
    assert {"call": 4, "setup": 4, "teardown": 4} == phases(project)


def test_a_mark_of_pytest_is_heeded_between_others(project: Project) -> None:
    project.prompts("say: 1", "say: 2", "say: 3", "say: 4", target="1")
    mark = "items[{}].add_marker(pytest.mark.{})"
    marks = f"{mark.format(1, 'skip')}; {mark.format(2, 'xfail')}"
    project.write("conftest.py", f"import pytest\ndef pytest_collection_modifyitems(items): {marks}\n")
    run_counted(project).assert_outcomes(passed=1, skipped=1, xfailed=1, failed=1)


def said(result: pytest.RunResult) -> list[str]:
    """Return what a run printed, without its times, and what a first run says."""
    other = ("to fail only if a later run is worse", "lmeval: each example runs all of pytest's phases")
    lines = [line for line in result.outlines if not line.startswith(other)]
    return [re.sub(r"\d+\.\d+ ?m?s|\d+\.\d$", "TIME", line) for line in lines]


def test_a_failure_shows_what_was_printed_and_logged_for_it_as_with_all_phases(project: Project) -> None:
    project.task(
        "tasks/words.jsonl", *(project.record(f"w{number}", "no", "yes", metric="loud") for number in range(4))
    )
    project.write("conftest.py", METRIC)
    alone = run_counted(project)
    project.write("conftest.py", METRIC + ALL_PHASES)
    whole = run_counted(project)
    assert said(whole) == said(alone)
    for section in ("stdout", "log", "stderr"):
        assert 4 == alone.stdout.str().count(f" Captured {section} call ")
    assert 4 == alone.stdout.str().count("(call)\n")


def test_a_run_that_stops_between_two_examples_tears_the_file_down(project: Project) -> None:
    project.prompts("say: 1", "say: 2", "say: 3", "say: 4", "say: 5", target="1")
    project.write("conftest.py", SHARED)
    result = run_counted(project, "--maxfail=2", "-s")
    result.assert_outcomes(passed=1, failed=2)
    assert 1 == result.stdout.str().count("down t.jsonl")


def test_the_name_of_the_running_test_is_gone_after_it(project: Project) -> None:
    right(project, 3)
    check = "def pytest_runtest_logfinish(): assert 'PYTEST_CURRENT_TEST' not in os.environ"
    project.write("conftest.py", f"import os\n{check}\n")
    run_counted(project).assert_outcomes(passed=3)


SENT = """
def pytest_report_to_serializable(report):
    with open("sent.txt", "a") as file:
        print(report.when, file=file)
"""
OTHER_PYTHON = """
def pytest_configure_node(node): node.workerinput["lmeval_needs"]["python"] = "another"
"""
IN_THE_CONTROLLER = """
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Listener())
class Listener:
    def pytest_runtest_{}(self): pass
"""


@pytest.mark.parametrize(
    ("conftest", "options", "whole"),
    [
        ("", (), 2),
        pytest.param(OTHER_PYTHON, (), 2, marks=pytest.mark.again),
        ("", ("--junitxml=junit.xml",), 4),
        pytest.param(ALL_PHASES, (), 4, marks=pytest.mark.again),
        pytest.param(IN_THE_CONTROLLER.format("logreport"), (), 4, marks=pytest.mark.again),
        pytest.param(IN_THE_CONTROLLER.format("logstart"), (), 4, marks=pytest.mark.again),
    ],
)
def test_a_worker_sends_the_phases_that_somebody_needs(
    project: Project, conftest: str, options: tuple[str, ...], whole: int
) -> None:
    right(project, 4)
    project.write("conftest.py", SENT + conftest)
    project.run("-n1", *options).assert_outcomes(passed=4)
    sent = (project.path / "sent.txt").read_text().split()
    assert {"call": 4, "setup": whole, "teardown": whole} == {when: sent.count(when) for when in sorted({*sent})}


def test_what_the_terminal_keeps_of_an_example_that_passed_says_what_its_report_did(project: Project) -> None:
    project.task("tasks/t.jsonl", *[project.record(f"e{number}", "yes", tags=["a"]) for number in range(4)])
    kept = """
def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats["passed"]:
        names = "nodeid", "location", "keywords", "user_properties", "sections", "outcome", "when", "longrepr", "passed"
        said = [(name, getattr(report, name)) for name in (*names, "fspath", "head_line", "lm_word", "longreprtext")]
        print(said, report.duration > 0, report.stop >= report.start, hash(report) == hash(report), "kept")
"""
    project.write("conftest.py", kept)
    own = [line for line in project.run("-rA").outlines if line.endswith("kept")]
    project.write("conftest.py", f"{kept}\n\ndef pytest_runtest_setup(item):\n    pass\n")
    whole = [line for line in project.run("-rA").outlines if line.endswith("kept")]
    assert (whole, 4) == (own, len(own))


@pytest.mark.again
def test_an_example_that_passed_needs_little_memory_until_the_end(project: Project) -> None:
    project.write("conftest.py", MEASURED)
    held = []
    for count in (100, 600):
        project.task("tasks/t.jsonl", *[project.spec(f"e{number}", f"word{number}") for number in range(count)])
        assert 0 == project.run("-pno:hypothesispytest").ret
        held.append(int((project.path / "held.txt").read_text()))
    # 2,900 bytes, the most of them of pytest's item; with its report and empty dicts of its own 5,000.
    assert 3_500 > (held[1] - held[0]) / 500


MEASURED = """
import gc
import tracemalloc

import pytest

tracemalloc.start()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    gc.collect()
    with open("held.txt", "w") as file:
        file.write(str(tracemalloc.get_traced_memory()[0]))
    tracemalloc.stop()
"""


FUNCTIONS = """
from pytest_lmeval import eval_task

ROWS = [{"id": str(number)} for number in range(10)]

@eval_task("a", data=ROWS)
async def test_a(row, lm):
    assert (await lm.ask("say: yes")).text == "yes"

@eval_task("b", data=ROWS)
async def test_b(row, lm, shelf):
    assert shelf
"""
WAITS = """
from pytest_lmeval import eval_task

@eval_task("c", data=[{"id": str(number)} for number in range(10)])
def test_c(row, lm, shelf):
    assert lm.ask("say: yes").text == "yes" and shelf
"""
SHELF = """
import pytest

@pytest.fixture(scope="{scope}")
def shelf():
    return ["book"]
"""


@pytest.mark.parametrize(
    ("scope", "options", "whole"),
    [
        # The first, that whose turn the fixture is set up at, and the last.
        ("module", (), 3),
        # And each that needs the fixture for itself.
        pytest.param("function", (), 11, marks=pytest.mark.again),
        pytest.param("module", ("--lm-items=plain",), 20, marks=pytest.mark.again),
    ],
)
def test_an_eval_function_that_began_ahead_runs_its_call_alone(
    project: Project, scope: str, options: tuple[str, ...], whole: int
) -> None:
    project.write("test_f.py", FUNCTIONS)
    project.write("conftest.py", SHELF.format(scope=scope))
    run_counted(project, "--lm-concurrency=2", *options).assert_outcomes(passed=20)
    assert {"call": 20, "setup": whole, "teardown": whole} == phases(project)


@pytest.mark.parametrize(("scope", "whole"), [("session", 2), pytest.param("function", 10, marks=pytest.mark.again)])
def test_a_function_that_waits_for_its_turn_runs_its_call_alone_where_its_fixtures_are_there(
    project: Project, scope: str, whole: int
) -> None:
    project.write("test_f.py", WAITS)
    project.write("conftest.py", SHELF.format(scope=scope))
    run_counted(project).assert_outcomes(passed=10)
    assert {"call": 10, "setup": whole, "teardown": whole} == phases(project)


@pytest.mark.parametrize("takes", ["tmp_path", "request"])
def test_a_function_that_waits_for_its_turn_and_takes_what_is_its_own_has_all_phases(
    project: Project, takes: str
) -> None:
    project.write("test_f.py", WAITS.replace("shelf", takes))
    run_counted(project).assert_outcomes(passed=10)
    assert {"call": 10, "setup": 10, "teardown": 10} == phases(project)
