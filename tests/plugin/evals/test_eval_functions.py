"""Evals that are test functions: what they score, how they fail, and what pytest makes of them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conftest import BOTH, Project

FATES = """
import asyncio, warnings
import pytest
from pytest_lmeval import eval_task

def rows(*ids):
    return [{"id": each} for each in ids]

@eval_task("fates", data=rows("right", "wrong", "assert", "raise", "exit", "skip", "xfail", "fail", "group", "nan",
                              "twice", "caught", "allowed", "none", "named"), tags=["fast", "two words"])
async def test_fate(row, lm):
    fate = row["id"]
    if fate == "right":
        lm.score("ok", (await lm.ask("say: yes")).text == "yes")
        lm.score("more", 0.25)
    if fate == "wrong":
        lm.score("ok", 0.5)
    if fate == "assert":
        lm.score("ok", True)
        assert (await lm.ask("say: 5")).text == "4", "it counts wrongly"
    if fate == "raise":
        {}["missing key"]
    if fate == "exit":
        raise SystemExit(3)
    if fate == "skip":
        pytest.skip("not today")
    if fate == "xfail":
        pytest.xfail("known")
    if fate == "fail":
        pytest.fail("in so many words")
    if fate == "group":
        async def skips():
            pytest.skip("from a group")
        async with asyncio.TaskGroup() as group:
            group.create_task(skips())
    if fate == "nan":
        try:
            lm.score("ok", float("nan"))
        except Exception:
            pass
    if fate == "twice":
        lm.score("ok", 1)
        lm.score("ok", True)
        lm.score("ok", 0)
    if fate == "caught":
        lm.score("ok", 1)
        try:
            await lm.ask("raise")
        except Exception:
            pass
    if fate == "allowed":
        try:
            await lm.ask("raise", may_fail=True)
        except Exception as error:
            lm.score("ok", "no answer" in str(error))
    if fate == "named":
        await asyncio.sleep(0)
        lm.score("ok", 1)

@eval_task("blocking", threads=True, data=rows("a", "b"))
def test_blocking(row, lm):
    lm.score("ok", lm.ask("say: " + row["id"]).text == row["id"])

@eval_task("slow", timeout=0.2)
async def test_slow(lm):
    await asyncio.sleep(60)

@eval_task("slow thread", timeout=0.2)
def test_slow_thread(lm):
    import time
    time.sleep(60 if False else 2)

@pytest.mark.parametrize("n", [1, 2])
@eval_task("parameters")
async def test_parameters(n, lm):
    lm.score("small", n < 2)

class TestClass:
    @eval_task("method", data=rows("m"))
    async def test_method(self, row, lm):
        assert isinstance(self, TestClass)

@eval_task("no lm", data=rows("x"))
async def test_no_lm(row):
    assert row["id"] == "x"

def test_plain(lm):
    assert lm.ask("say: 1").text == "1"

def test_without():
    assert True
"""
MODEL = """
class Model:
    name = "stub.v1"

    async def complete(self, request):
        from pytest_lmeval import AdapterError, Completion
        if request.text == "raise":
            raise AdapterError("no answer")
        return Completion(request.text.rpartition("say: ")[2], prompt_tokens=2, completion_tokens=1)
"""
EXPECTED = {
    "fates:right": ("passed", 1.0, ""),
    "fates:wrong": ("failed", 0.5, ""),
    "fates:assert": ("failed", 0.0, ""),
    "fates:raise": ("error", None, "KeyError: 'missing key' (tests/test_fates.py:"),
    "fates:exit": ("error", None, "SystemExit: 3"),
    "fates:xfail": ("below", 0.0, ""),
    "fates:fail": ("failed", 0.0, ""),
    "fates:nan": ("error", None, "tests/test_fates.py:"),
    "fates:twice": ("error", None, "lm.score('ok') is 0, and was 1 before"),
    "fates:caught": ("error", None, "no answer"),
    "fates:allowed": ("passed", 1.0, ""),
    "fates:none": ("passed", 1.0, ""),
    "fates:named": ("passed", 1.0, ""),
    "blocking:a": ("passed", 1.0, ""),
    "blocking:b": ("passed", 1.0, ""),
    "slow:test_slow": ("timeout", None, "the function took longer than 0.2 s"),
    "slow thread:test_slow_thread": ("timeout", None, "the function took longer than 0.2 s"),
    "parameters:1": ("passed", 1.0, ""),
    "parameters:2": ("failed", 0.0, ""),
    "no lm:x": ("passed", 1.0, ""),
    "method:m": ("passed", 1.0, ""),
    "tests/test_fates:test_plain": ("passed", 1.0, ""),
}


def write(project: Project, **files: str) -> None:
    project.write("model.py", MODEL)
    for name, content in files.items():
        project.write(f"tests/{name}.py", content)


def lines_of(project: Project) -> dict[str, dict[str, Any]]:
    """Return the results in the ledger, by task and id."""
    lines = map(json.loads, (project.path / "reports/ledger.jsonl").read_text("utf-8").splitlines())
    return {f"{line['task']}:{line['id']}": line for line in lines if "status" in line}


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_every_way_to_end_has_its_status_and_its_reason(project: Project, processes: str) -> None:
    write(project, test_fates=FATES)
    result = project.run(processes, "tests", "--lm-include-per-example")
    found = project.examples()
    assert EXPECTED.keys() == found.keys()
    for name, (status, score, error) in EXPECTED.items():
        assert (status, score) == (found[name]["status"], found[name]["score"]), name
        assert error in found[name].get("error", ""), name
    counts = project.board()["counts"]
    assert (2, 5, 2) == (counts["skipped"], counts["errors"], counts["timeouts"])
    assert "it counts wrongly" in found["fates:assert"]["details"]["reason"]
    output = result.stdout.str()
    assert "AssertionError: it counts wrongly" in output
    assert "assert '5' == '4'" in output
    assert "'tests/test_fates.py::test_fate[wrong]'" in output
    assert 3 == result.ret


def test_an_assertion_that_an_installed_package_raises_is_an_error(project: Project) -> None:
    project.write("site-packages/shop.py", "def check(x):\n    assert x, 'from outside'\n")
    write(
        project,
        test_x="import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'site-packages'))\n"
        "from pytest_lmeval import eval_task\nimport shop\n\n"
        "@eval_task('x')\nasync def test_x(lm):\n    shop.check(0)\n",
    )
    project.run("tests", "--lm-include-per-example")
    assert "error" == project.examples()["x:test_x"]["status"]


def test_scores_steps_usage_and_the_function_s_code_stand_in_the_ledger(project: Project) -> None:
    write(project, test_fates=FATES)
    project.run("tests", "-k", "right or test_plain")
    line = lines_of(project)["fates:right"]
    assert {"ok": 1.0, "more": 0.25} == line["metrics"]
    assert {"prompt_tokens": 2, "completion_tokens": 1} == line["usage"]
    assert "ok" == line["details"]["decided_by"]
    assert "test_fate" == line["details"]["function"]["name"]
    (step,) = line["details"]["steps"]
    assert ("request", "stub.v1", "say: yes", "yes") == (step["kind"], step["name"], step["input"], step["output"])
    assert [] == line["outputs"]
    assert "test_fate[right]" == line["item"]
    assert '{"id": "right"}' == line["prompt"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-m", "fast"), 15),
        (("-k", "fates and right"), 1),
        (("-k", "blocking"), 2),
        (("--lm-limit", "1"), 9),
        (("--lm-shard", "1/2"), 12),
    ],
    ids=["tag", "name", "task", "limit", "shard"],
)
def test_examples_are_selected_as_those_of_task_files(
    project: Project, options: tuple[str, ...], expected: int
) -> None:
    write(project, test_fates=FATES)
    result = project.run("tests", "--collect-only", "-q", *options)
    ids = [line for line in result.outlines if "::" in line and "test_without" not in line]
    assert expected == len(ids), result.stdout.str()


def test_what_an_example_prints_while_pytest_changes_streams_stands_with_it(project: Project) -> None:
    write(
        project,
        test_out="""
import asyncio, threading
import pytest
from pytest_lmeval import eval_task

BEGUN, BLOCKED, CHANGED, PRINTED = [threading.Event() for _ in range(4)]

@eval_task("first", data=[{"id": "f0"}])
async def test_first(row, lm):
    await asyncio.sleep(0)
    assert row

@pytest.fixture
def late():
    yield
    CHANGED.set()
    assert PRINTED.wait(20)

def test_between(late):
    BEGUN.set()
    assert BLOCKED.wait(20)

@eval_task("beside", data=[{"id": "b0"}])
async def test_beside(row, lm):
    while not BEGUN.is_set():
        await asyncio.sleep(0.01)
    BLOCKED.set()
    CHANGED.wait(20)
    print("from b0")
    PRINTED.set()
    assert row
""",
    )
    result = project.run("tests", "-rA")
    output = result.stdout.str()
    assert 0 == result.ret, output
    _, header, own = output.rpartition("test_beside[b0] ___")
    assert header, output
    assert 1 == output.count("from b0") == own.count("from b0")


def test_what_an_example_prints_and_logs_stands_with_it_alone(project: Project) -> None:
    write(
        project,
        test_out="""
import asyncio, logging
from pytest_lmeval import eval_task

@eval_task("out", data=[{"id": f"e{n}"} for n in range(5)])
async def test_out(row, lm):
    print("before", row["id"])
    await asyncio.sleep(0.02)
    print("after", row["id"])
    logging.getLogger("shop").warning("logged %s", row["id"])
    assert row["id"] != "e3"

def test_capsys(capsys, caplog):
    import time
    print("mine")
    time.sleep(0.2)
    assert "mine\\n" == capsys.readouterr().out
    assert not caplog.records

@eval_task("later", data=[{"id": f"l{n}"} for n in range(5)])
async def test_later(row, lm):
    for _ in range(10):
        print("noise")
        logging.getLogger("shop").warning("noise")
        await asyncio.sleep(0.02)
    assert row
""",
    )
    result = project.run("tests", "-rA")
    output = result.stdout.str()
    assert 1 == result.ret, output
    for number in range(5):
        assert 1 == output.count(f"before e{number}\nafter e{number}"), output
        assert 1 == output.count(f"logged e{number}"), output
    progress = output.partition("= FAILURES")[0]
    assert "noise" not in progress


def test_without_an_adapter_evals_are_skipped_in_one_line(project: Project) -> None:
    write(project, test_fates=FATES)
    result = project.run_pytest("tests")
    assert 0 == result.ret, result.stdout.str()
    assert "24 evals skipped: no --lm-adapter" in result.outlines
    assert not (project.path / "reports").exists()


@pytest.mark.parametrize(
    "options", [("tests", "-k", "fates and right"), ("tests", "--lm-limit=2")], ids=["alone", "option"]
)
def test_without_an_adapter_an_eval_that_is_asked_for_is_a_usage_error(
    project: Project, options: tuple[str, ...]
) -> None:
    write(project, test_fates=FATES)
    result = project.run_pytest(*options)
    assert 4 == result.ret
    assert "no adapter: say which model to ask with --lm-adapter=SPEC" in result.stderr.str()


@pytest.mark.parametrize("processes", BOTH)
def test_a_project_with_its_own_lm_fixture_is_left_alone(project: Project, processes: str) -> None:
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef lm():\n    return 'theirs'\n")
    project.write("tests/test_x.py", "def test_x(lm):\n    assert lm == 'theirs'\n")
    result = project.run("tests", processes)
    assert 0 == result.ret, result.stdout.str()
    result.assert_outcomes(passed=1)


def test_examples_that_are_decided_by_different_scores_leave_the_run_without_a_verdict(project: Project) -> None:
    write(
        project,
        test_x="""
from pytest_lmeval import eval_task

@eval_task("x", data=[{"id": "a"}, {"id": "b"}])
async def test_x(row, lm):
    lm.score("first" if row["id"] == "a" else "second", 1)
""",
    )
    result = project.run("tests")
    assert 3 == result.ret
    assert "decided by different scores: first (1), second (1); say score=NAME in eval_task" in result.stdout.str()


def test_the_score_that_is_named_decides_and_one_that_is_not_recorded_is_an_error(project: Project) -> None:
    write(
        project,
        test_x="""
from pytest_lmeval import eval_task

@eval_task("x", data=[{"id": "a"}, {"id": "b"}], score="second", threshold=0.5)
async def test_x(row, lm):
    lm.score("first", 0)
    if row["id"] == "a":
        lm.score("second", 0.5)
""",
    )
    project.run("tests", "--lm-include-per-example")
    found = project.examples()
    assert ("passed", 0.5) == (found["x:a"]["status"], found["x:a"]["score"])
    assert "the score 'second' that decides was not recorded; recorded: first" in found["x:b"]["error"]


def test_the_floor_of_a_task_is_judged_unless_the_command_line_sets_another(project: Project) -> None:
    write(
        project,
        test_x="""
from pytest_lmeval import eval_task

@eval_task("x", data=[{"id": "a"}, {"id": "b"}], min_score=0.8)
async def test_x(row, lm):
    lm.score("ok", row["id"] == "a")
""",
    )
    result = project.run("tests", "--lm-gate=tasks")
    assert 1 == result.ret
    assert "x: 0.5000 is under its floor 0.8" in result.stdout.str()
    assert 0 == project.run("tests", "--lm-gate=tasks", "--lm-min-score=x=0.5").ret


BAD = {
    "missing": ("data='none.csv'", "row, lm", ("none.csv", "No such file", "test file's folder")),
    "empty": ("data='empty.jsonl'", "row, lm", ("empty.jsonl has no rows",)),
    "suffix": ("data='rows.txt'", "row, lm", ("'rows.txt' is not one of .csv, .jsonl, .parquet",)),
    "no rows": ("data=[]", "row, lm", ("data: no rows",)),
    "same ids": ("data=[{'id': 1}, {'id': '1'}]", "row, lm", ("rows 1 and 2 have the same id '1'",)),
    "an id missing": ("data=[{'id': 'a'}, {}]", "row, lm", ("row 2: id: expected a text or a whole number",)),
    "no mapping": ("data=['a']", "row, lm", ("row 1: expected a mapping, got 'a'",)),
    "no argument": ("data=[{'id': 'a'}]", "lm", ("give test_x an argument named row",)),
    "threshold": ("threshold=2", "lm", ("threshold: expected a number from 0 to 1, got 2",)),
    "timeout": ("timeout=0", "lm", ("timeout: expected seconds above 0, got 0",)),
    "threads": ("threads=True", "lm", ("threads=True is for def functions",)),
}


def test_a_mistake_in_eval_task_is_a_bad_file_that_says_where(project: Project) -> None:
    project.write("tests/empty.jsonl", "")
    project.write("tests/rows.txt", "a")
    for fault, (arguments, takes, _) in BAD.items():
        project.write(
            f"tests/test_{fault.replace(' ', '_')}.py",
            "from pytest_lmeval import eval_task\n\n"
            f"@eval_task('x', {arguments})\nasync def test_x({takes}):\n    pass\n",
        )
    result = project.run("tests")
    assert 2 == result.ret, result.stdout.str()
    said = re.split(r"ERROR collecting tests/(\w+)\.py", result.stdout.str().partition("short test summary")[0])
    told = dict(zip(said[1::2], said[2::2], strict=True))
    for fault, (_, _, expected) in BAD.items():
        assert [] == [part for part in expected if part not in told[f"test_{fault.replace(' ', '_')}"]], fault
    assert len(BAD) == len(told)


TWO_MODELS = """
class Right:
    name = "right"

    def generate(self, prompts):
        return ["yes" for prompt in prompts]

class Wrong:
    name = "wrong"

    def generate(self, prompts):
        return ["no" for prompt in prompts]
"""


@pytest.mark.parametrize("processes", BOTH)
def test_of_several_models_each_is_asked_by_its_own_examples(project: Project, processes: str) -> None:
    project.write("models.py", TWO_MODELS)
    project.write(
        "tests/test_x.py",
        "import asyncio\nimport pytest\nfrom pytest_lmeval import eval_task\n\n"
        "@pytest.fixture(scope='session')\nasync def loop():\n    return asyncio.get_running_loop()\n\n"
        "@eval_task('x', data=[{'id': 'a'}, {'id': 'b'}])\nasync def test_x(row, lm, loop):\n"
        "    assert loop is asyncio.get_running_loop()\n"
        "    lm.score('ok', (await lm.ask('?')).text == 'yes')\n\n"
        "def test_plain(lm):\n    assert lm.ask('?').text == 'yes'\n",
    )
    models = ["--lm-adapter=good=models:Right", "--lm-adapter=bad=models:Wrong"]
    result = project.run_pytest("tests", processes, *models)
    assert 1 == result.ret, result.stdout.str()
    assert 1.0 == project.board("reports/good")["overall_score"]
    assert 0.0 == project.board("reports/bad")["overall_score"]
    # What failed, and nothing else, is run again by pytest's own means.
    again = project.run_pytest("tests", *models, "--lf", "--collect-only", "-q")
    expected = ["test_x[a][bad]", "test_x[b][bad]", "test_plain[bad]"]
    assert [f"tests/test_x.py::{name}" for name in expected] == [line for line in again.outlines if "::" in line]
