"""What an eval function gives back, leaves undone or never runs: used, refused with what to do, or reported."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests import needs
from tests.conftest import BOTH, Project
from tests.sources import source

EXPECTED = {
    "helper:a": ("passed", ""),
    "fixture:a": ("passed", ""),
    "wrapped:a": ("failed", ""),
    "numpy:a": ("error", "which decides nothing: assert it, record it by lm.score"),
    "judge not awaited:a": ("error", "lm.judge was never awaited, so nothing was asked"),
    "library:a": ("failed", ""),
    "allowed:a": ("passed", ""),
    "after may_fail:a": ("error", "no answer"),
    "cancelled:a": ("passed", ""),
    "output:a": ("failed", ""),
    "returned:a": ("passed", ""),
    "tests/test_x:test_plain_bool": ("error", "the function returned True, which decides nothing"),
    "tests/test_x:test_plain_nothing": ("error", "nothing was asserted or scored"),
}


def run_tests(project: Project, body: str, *arguments: str) -> Any:
    project.copy("eval_border", "model.py", "shop.py", "tests/helpers.py")
    project.write("tests/test_x.py", body)
    paths = f"pythonpath={project.path} {project.path}/tests"
    return project.run("tests", "-o", paths, "--lm-include-per-example", "-Wignore", *arguments)


def test_what_a_function_gives_back_or_leaves_undone_decides_its_status(project: Project) -> None:
    run_tests(project, source("eval_border/tests/test_x.py"))
    found = project.examples()
    assert EXPECTED.keys() == found.keys()
    for name, (status, error) in EXPECTED.items():
        assert status == found[name]["status"], (name, found[name])
        assert error in found[name].get("error", ""), name
    details = {name: found[f"{name}:a"]["details"] for name in ("output", "returned", "cancelled")}
    assert {"text": "two", "of": [{"id": "a"}]} == details["output"]["output"]
    assert "three" == details["returned"]["output"]
    (step,) = details["cancelled"]["steps"]
    assert (True, None) == (step["cancelled"], step.get("error"))


NEVER_RUN = {
    "async generator": ("@eval_task('x')\nasync def test_x(lm):\n    assert 0\n    yield\n", "test_x has a yield"),
    "wrapped generator": (
        "from helpers import traced\n\n@eval_task('x')\n@traced\ndef test_x(lm):\n    yield\n",
        "test_x has a yield",
    ),
    "class method": (
        "class TestX:\n    @classmethod\n    @eval_task('x')\n    def test_x(cls):\n        assert 0\n",
        "TestX.test_x: eval_task needs a plain method: remove @classmethod",
    ),
}


def test_a_function_that_would_never_run_is_an_error_at_collection(project: Project) -> None:
    for name, (body, _) in NEVER_RUN.items():
        project.write(f"tests/test_{name.replace(' ', '_')}.py", f"from pytest_lmeval import eval_task\n\n{body}")
    result = run_tests(project, "def test_fine(lm):\n    assert lm\n")
    output = result.stdout.str()
    assert 2 == result.ret, output
    said = re.split(r"ERROR collecting tests/(\w+)\.py", output.partition("short test summary")[0])
    told = dict(zip(said[1::2], said[2::2], strict=True))
    assert len(NEVER_RUN) == len(told), output
    for name, (_, expected) in NEVER_RUN.items():
        assert expected in told[f"test_{name.replace(' ', '_')}"], name


SHARED = """
import asyncio, logging, threading
import pytest
from pytest_lmeval import eval_task

ROWS = [{"id": "a", "messages": [{"role": "user"}], "lock": threading.Lock()}]

@eval_task("grown", data=ROWS)
@pytest.mark.parametrize("k", [1, 2])
async def test_grown(row, lm, k):
    row["messages"].append("more")
    row["messages"][0]["role"] += "!"
    lm.score("one", (len(row["messages"]), row["messages"][0]["role"]) == (2, "user!"))

@pytest.fixture
def prepared(row):
    row["messages"].append("system")

@eval_task("prepared", data=ROWS)
@pytest.mark.parametrize("k", [1, 2])
def test_prepared(row, lm, prepared, k):
    lm.score("one", len(row["messages"]) == 2)

@eval_task("grown too", data=ROWS)
def test_grown_too(row, lm):
    row["messages"].clear()
    lm.score("one", 1)
"""


def test_a_row_is_a_copy_for_each_call_and_what_cannot_be_copied_is_named_once(project: Project) -> None:
    result = run_tests(project, SHARED, "--lm-repeats=3")
    assert 0 == result.ret, result.stdout.str()
    assert {"passed"} == {record["status"] for record in project.examples().values()}
    told = [line for line in result.outlines if "in a row is not copied" in line]
    assert [
        f"{task}: a _thread.lock in a row is not copied: all calls share it, so none may change it"
        for task in ("grown too", "grown", "prepared")
    ] == sorted(told)


def test_after_the_run_logging_is_as_it_was_before(project: Project) -> None:
    project.write("conftest.py", AS_BEFORE)
    test = "from pytest_lmeval import eval_task\n\n@eval_task('x')\nasync def test_x(lm): assert 1\n"
    result = run_tests(project, test)
    assert 0 == result.ret, result.stdout.str()
    assert "[]" == (project.path / "left.txt").read_text()


def test_capsys_and_caplog_see_what_the_function_itself_writes(project: Project) -> None:
    result = run_tests(project, source("eval_border/tests/test_captured.py"))
    assert 0 == result.ret, result.stdout.str()


AS_BEFORE = """
import logging, pytest

def ours():
    handlers = [*logging.getLogger().handlers, *HELD]
    kinds = [type(each).__module__ for each in handlers] + [f.__module__ for each in handlers for f in each.filters]
    return [kind for kind in kinds if kind.startswith("pytest_lmeval")]

HELD = []

def pytest_sessionstart(session):
    plugin = session.config.pluginmanager.getplugin("logging-plugin")
    HELD.extend([plugin.report_handler, plugin.caplog_handler])

@pytest.hookimpl(trylast=True)
def pytest_runtest_call():
    assert ours()

@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    open("left.txt", "w").write(str(ours()))
"""
PARTS = """
import unittest
import pytest
from pytest_lmeval import eval_task

@eval_task("parts", data=[{"id": "right"}, {"id": "wrong"}, {"id": "raise"}])
def test_parts(row, subtests):
    with subtests.test("first"):
        assert row["id"] != "wrong", "in the first part"
    with subtests.test("second"):
        if row["id"] == "raise":
            {}["key"]

@eval_task("unittest's skip")
def test_skipped(lm):
    raise unittest.SkipTest("not today")

@eval_task("async parts")
async def test_async_parts(subtests):
    with subtests.test("first"):
        assert 0

@eval_task("known")
async def test_known(lm):
    pytest.xfail("known to fail")

def test_plain_known(lm):
    pytest.xfail("known to fail")
"""


def test_a_failed_subtest_fails_the_example_and_an_xfail_counts_as_with_a_mark(project: Project) -> None:
    result = run_tests(project, PARTS)
    found = {name: (record["status"], record["score"]) for name, record in project.examples().items()}
    assert {
        "parts:right": ("passed", 1.0),
        "parts:wrong": ("failed", 0.0),
        "parts:raise": ("error", None),
        "async parts:test_async_parts": ("failed", 0.0),
        "known:test_known": ("below", 0.0),
        "tests/test_x:test_plain_known": ("below", 0.0),
    } == found
    assert 1 == project.board()["counts"]["skipped"]
    assert "a subtest failed: KeyError: 'key'" in project.examples()["parts:raise"]["error"]
    assert "a subtest failed: AssertionError: in the first part" in result.stdout.str()
    assert "the test failed, the example is passed" not in result.stdout.str()


TIMES = """
import pytest
from pytest_lmeval import eval_task

@eval_task("times", data=[{"id": f"e{n}"} for n in range(4)])
@pytest.mark.parametrize("k", [1, 2])
def test_times(row, lm, k):
    lm.score("ok", k == 1)
"""


def test_rows_times_parameters_are_the_examples_of_a_whole_run(project: Project) -> None:
    update = ("--lm-baseline=base.json", "--lm-update-baseline")
    assert 0 == run_tests(project, TIMES, "--lm-gate=baseline", *update).ret
    base = (project.path / "base.json").read_bytes()
    assert "selection" not in project.board()
    half = run_tests(project, TIMES, "--lm-gate=baseline", "-k", "1-e", *update)
    assert (4, base) == (half.ret, (project.path / "base.json").read_bytes())
    assert "needs a run of all examples; 4 of 8 are selected (-k)" in half.stderr.str()
    fewer = run_tests(project, TIMES, "--lm-limit=2")
    assert {"available": 8, "selected": 4} == project.board()["selection"]["tasks"]["times"], fewer.stdout.str()


def test_an_item_that_is_there_twice_stands_for_no_other(project: Project) -> None:
    first = [f"tests/test_x.py::test_times[1-e{n}]" for n in range(4)]
    project.write("tests/test_x.py", TIMES)
    project.copy("eval_border", "model.py")
    update = ("--lm-gate=baseline", "--lm-baseline=base.json", "--lm-update-baseline")
    twice = project.run("--keep-duplicates", *first, *first, *update)
    assert 4 == twice.ret, twice.stdout.str()
    assert "4 of 8 are selected" in twice.stderr.str()


def test_pytest_repeat_is_refused_for_examples(project: Project) -> None:
    needs.installed("pytest_repeat")
    project.small_tasks()
    result = project.run("-ppytest_repeat", "--count=2", "tasks")
    assert 2 == result.ret, result.stdout.str()
    assert "pytest-repeat would make 2 examples of each" in result.stdout.str()
    assert "use --lm-repeats=2" in result.stdout.str()
    assert 0 == project.run("-ppytest_repeat", "tasks/words.jsonl").ret


COUNTED = """
import asyncio
from pytest_lmeval import eval_task

ROWS = [{"id": f"e{n}"} for n in range(3)]

@eval_task("silent", data=ROWS)
async def test_silent(row, lm):
    lm.score("ok", 1)

@eval_task("sometimes", data=ROWS)
async def test_sometimes(row, lm):
    assert row["id"] == "e0" or await lm.ask("say: x")

@eval_task("cancels", data=ROWS)
async def test_cancels(row, lm):
    asked = asyncio.ensure_future(lm.ask("say: x"))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.sleep(0)
    lm.score("ok", 1)

@eval_task("said", data=ROWS[:1])
async def test_said(row, lm):
    return {"reply": (await lm.ask("say: OLD")).text, "ok": check(lm)}

def check(lm):
    lm.score("ok", 0)
"""
TOLD = [
    "silent: none of its 3 examples asked stub.v1",
    "sometimes: 3 examples passed by asserts alone",
    "sometimes: 2 of its 3 scored examples asked stub.v1",
    "cancels: the application cancelled 3 requests",
]


@pytest.mark.parametrize("processes", BOTH)
def test_every_report_counts_asserts_alone_silent_examples_and_cancelled_requests(
    project: Project, processes: str
) -> None:
    result = run_tests(project, COUNTED, processes)
    reports = [(project.path / "reports" / name).read_text("utf-8") for name in ("leaderboard.md", "report.html")]
    assert set(TOLD) <= {*project.board()["remarks"]}
    for told in TOLD:
        assert told in result.stdout.str(), told
        assert [] == [text for text in reports if told not in text.replace("\\_", "_")], told


def test_what_the_application_answered_is_in_the_failure_the_page_and_the_difference(project: Project) -> None:
    result = run_tests(project, COUNTED, "-k", "said", "--lm-report-dir=old", "--lm-repeats=2")
    assert '  output: {"reply": "OLD", "ok": null}' in result.stdout.str()
    assert '"output":{"reply":"OLD"' in (project.path / "old/report.html").read_text("utf-8").replace(" ", "")
    run_tests(
        project, COUNTED.replace("OLD", "NEW").replace('("ok", 0)', '("ok", 1)'), "-k", "said", "--lm-report-dir=new"
    )
    told = project.lmeval("diff", "old/ledger.jsonl", "new/ledger.jsonl").stdout.str()
    assert '{"reply": "OLD", "ok": null}' in told
    assert '{"reply": "NEW", "ok": null}' in told


def test_a_helper_of_the_tests_that_changed_is_a_changed_test_and_the_application_is_not(project: Project) -> None:
    run_tests(project, COUNTED, "-k", "said")
    (project.path / "reports/ledger.jsonl").rename(project.path / "base.jsonl")
    changed = ("-k", "said", "--lm-baseline=base.jsonl", "--lm-gate=baseline")
    assert "the test changed too" not in run_tests(project, COUNTED, *changed).stdout.str()
    explained = COUNTED.replace("def check(lm):", "def check(lm):  # so\n    'Say.'")
    assert "the test changed too" not in run_tests(project, explained, *changed).stdout.str()
    project.edit("shop.py", "upper", "lower")
    assert (
        "the test changed too" not in project.run("tests", f"-opythonpath={project.path} tests", *changed).stdout.str()
    )
    told = run_tests(project, COUNTED.replace('("ok", 0)', '("ok", 0.5)'), *changed).stdout.str()
    assert "the test changed too: test_said" in told


PLAIN_ASYNC = """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"

class TestPlain:
    async def test_method(self, lm):
        assert self
        return False

async def test_nothing(lm):
    await lm.ask("say: x")

async def test_not_awaited(lm):
    assert lm.ask("say: x")

async def test_output(lm):
    lm.score("ok", 1)
    return "text"
"""


def test_an_async_test_that_another_plugin_runs_obeys_the_same(project: Project) -> None:
    needs.installed("anyio")
    run_tests(project, PLAIN_ASYNC, "-panyio")
    found = {name.rpartition(":")[2].partition("[")[0]: record for name, record in project.examples().items()}
    errors = {name: record.get("error", "") for name, record in found.items()}
    assert "the function returned False" in errors["test_method"]
    assert "nothing was asserted or scored" in errors["test_nothing"]
    assert "lm.ask was never awaited" in errors["test_not_awaited"]
    assert ("passed", "text") == (found["test_output"]["status"], found["test_output"]["details"]["output"])


DROPPING = """
import functools
from pytest_lmeval import eval_task

def dropping(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        function(*arguments, **named)
    return call

@eval_task("dropped", data=[{"id": "a"}])
@dropping
async def test_dropped(row, lm):
    assert (await lm.ask("say: x")).text == "y"
"""


def test_an_async_function_that_a_decorator_never_awaits_is_an_error(project: Project) -> None:
    project.write("test_dropped.py", DROPPING)
    # Python's own warning of a coroutine that nobody awaited comes when it is collected, with any test.
    done = project.run("-Wignore")
    assert 3 == done.ret
    done.stdout.fnmatch_lines(["*the function is async def, but its call returned no awaitable*"])
    assert [] == project.calls()
