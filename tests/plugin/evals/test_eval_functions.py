"""Evals that are test functions: what they score, how they fail, and what pytest makes of them."""

from __future__ import annotations

import re

import pytest

from tests.conftest import BOTH, Project

EXPECTED = {
    "right:test_right": ("passed", 1.0, ""),
    "wrong:test_wrong": ("failed", 0.5, ""),
    "assert:test_assert": ("failed", 0.0, ""),
    "raise:test_raise": ("error", None, "KeyError: 'missing key' (tests/test_fates.py:"),
    "exit:test_exit": ("error", None, "SystemExit: 3"),
    "xfail:test_xfail": ("below", 0.0, ""),
    "fail:test_fail": ("failed", 0.0, ""),
    "nan:test_nan": ("error", None, "tests/test_fates.py:"),
    "twice:test_twice": ("error", None, "lm.score('ok') is 0, and was 1 before"),
    "caught:test_caught": ("error", None, "no answer"),
    "allowed:test_allowed": ("passed", 1.0, ""),
    "none:test_none": ("passed", 1.0, ""),
    "named:test_named": ("passed", 1.0, ""),
    "rows:right": ("passed", 1.0, ""),
    "rows:wrong": ("failed", 0.0, ""),
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


def write_tests(project: Project, **files: str) -> None:
    project.copy("eval_fates", "model.py")
    for name, content in files.items():
        project.write(f"tests/{name}.py", content)


def test_every_way_to_end_has_its_status_and_its_reason(project: Project) -> None:
    project.copy("eval_fates")
    result = project.run("tests", "--lm-include-per-example")
    found = project.examples()
    assert EXPECTED.keys() == found.keys()
    for name, (status, score, error) in EXPECTED.items():
        assert (status, score) == (found[name]["status"], found[name]["score"]), name
        assert error in found[name].get("error", ""), name
    counts = project.board()["counts"]
    assert (2, 5, 2) == (counts["skipped"], counts["errors"], counts["timeouts"])
    assert "it counts wrongly" in found["assert:test_assert"]["details"]["reason"]
    output = result.stdout.str()
    assert "AssertionError: it counts wrongly" in output
    assert "assert '5' == '4'" in output
    assert "'tests/test_fates.py::test_row[wrong]'" in output
    assert 3 == result.ret


def test_an_assertion_that_an_installed_package_raises_is_an_error(project: Project) -> None:
    project.write("site-packages/shop.py", "def check(x):\n    assert x, 'from outside'\n")
    write_tests(
        project,
        test_x="import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'site-packages'))\n"
        "from pytest_lmeval import eval_task\nimport shop\n\n"
        "@eval_task('x')\nasync def test_x(lm):\n    shop.check(0)\n",
    )
    project.run("tests", "--lm-include-per-example")
    assert "error" == project.examples()["x:test_x"]["status"]


def test_scores_steps_usage_and_the_function_s_code_stand_in_the_ledger(project: Project) -> None:
    project.copy("eval_fates")
    project.run("tests", "-k", "right or test_plain")
    line = project.ledger()["rows:right"]
    assert {"ok": 1.0, "more": 0.25} == line["metrics"]
    assert {"prompt_tokens": 2, "completion_tokens": 1} == line["usage"]
    assert "ok" == line["details"]["decided_by"]
    assert "test_row" == line["details"]["function"]["name"]
    (step,) = line["details"]["steps"]
    assert ("request", "stub.v1", "say: right", "right") == (step["kind"], step["name"], step["input"], step["output"])
    assert [] == line["outputs"]
    assert "test_row[right]" == line["item"]
    assert '{"id": "right"}' == line["prompt"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-m", "fast"), 17),
        (("-k", "test_right"), 1),
        (("-k", "blocking"), 2),
        (("--lm-limit", "1"), 24),
        (("--lm-shard", "1/2"), 13),
    ],
    ids=["tag", "name", "task", "limit", "shard"],
)
def test_examples_are_selected_as_those_of_task_files(
    project: Project, options: tuple[str, ...], expected: int
) -> None:
    project.copy("eval_fates")
    result = project.run("tests", "--collect-only", "-q", *options)
    ids = [line for line in result.outlines if "::" in line and "test_without" not in line]
    assert expected == len(ids), result.stdout.str()


def test_what_an_example_prints_while_pytest_changes_streams_stands_with_it(project: Project) -> None:
    project.copy("eval_fates", "model.py")
    project.copy("eval_streams")
    result = project.run("tests", "-rA")
    output = result.stdout.str()
    assert 0 == result.ret, output
    _, header, own = output.rpartition("test_beside[b0] ___")
    assert header, output
    assert 1 == output.count("from b0") == own.count("from b0")


def test_what_an_example_prints_and_logs_stands_with_it_alone(project: Project) -> None:
    write_tests(
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
    project.copy("eval_fates")
    result = project.run_pytest("tests")
    assert 0 == result.ret, result.stdout.str()
    assert "26 evals skipped: no --lm-adapter" in result.outlines
    assert not (project.path / "reports").exists()


@pytest.mark.parametrize("options", [("tests", "-k", "test_right"), ("tests", "--lm-limit=2")], ids=["alone", "option"])
def test_without_an_adapter_an_eval_that_is_asked_for_is_a_usage_error(
    project: Project, options: tuple[str, ...]
) -> None:
    project.copy("eval_fates")
    result = project.run_pytest(*options)
    assert 4 == result.ret
    assert "no adapter: name the model with --lm-adapter=SPEC" in result.stderr.str()


def test_a_project_with_its_own_lm_fixture_is_left_alone(project: Project) -> None:
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef lm():\n    return 'theirs'\n")
    project.write("tests/test_x.py", "def test_x(lm):\n    assert lm == 'theirs'\n")
    result = project.run("tests")
    assert 0 == result.ret, result.stdout.str()
    result.assert_outcomes(passed=1)


def test_examples_that_are_decided_by_different_scores_leave_the_run_without_a_verdict(project: Project) -> None:
    write_tests(
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
    assert "decided by different scores: first (1), second (1); set score=NAME in eval_task" in result.stdout.str()


def test_the_score_that_is_named_decides_and_one_that_is_not_recorded_is_an_error(project: Project) -> None:
    write_tests(
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
    assert "the score 'second', which decides, was not recorded; recorded: first" in found["x:b"]["error"]


def test_the_floor_of_a_task_is_judged_unless_the_command_line_sets_another(project: Project) -> None:
    write_tests(
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
    assert "x: 0.5000 is below its floor 0.8" in result.stdout.str()
    assert 0 == project.run("tests", "--lm-gate=tasks", "--lm-min-score=x=0.5").ret


BAD = {
    "missing": ("data='none.csv'", "row, lm", ("none.csv", "No such file", "test file's folder")),
    "empty": ("data='empty.jsonl'", "row, lm", ("empty.jsonl has no rows",)),
    "suffix": ("data='rows.txt'", "row, lm", ("'rows.txt' is not one of .csv, .jsonl, .parquet",)),
    "same ids": ("data=[{'id': 1}, {'id': '1'}]", "row, lm", ("rows 1 and 2 have the same id '1'",)),
    "an id missing": ("data=[{'id': 'a'}, {}]", "row, lm", ("row 2: id: expected a text or a whole number",)),
    "no argument": ("data=[{'id': 'a'}]", "lm", ("give test_x an argument named row",)),
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


MAKES_ITEMS = """
import pytest

class Own(pytest.Function):
    pass

noted = {}

@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector, name, obj):
    items = yield
    if name == "test_own":
        items = [Own.from_parent(collector, name=name)]
    for item in items or () if name.startswith("test_") else ():
        item.user_properties.append(("noted", item.name))
        noted[item.name] = item
    return items

def pytest_collection_finish(session):
    for item in session.items:
        is_same, mark = noted[item.name] is item, item.get_closest_marker("lmeval")
        print("MADE", item.name, type(item).__name__, is_same, item.user_properties, mark)
"""
MADE = """
from pytest_lmeval import eval_task

@eval_task("rows", data=[{"id": "a"}, {"id": "b"}])
async def test_rows(row):
    assert row["id"]

@eval_task("own")
def test_own():
    assert True

def test_plain():
    pass
"""


def test_a_plugin_finds_what_it_noted_of_an_item_on_the_example(project: Project) -> None:
    project.write("conftest.py", MAKES_ITEMS)
    project.write("tests/test_made.py", MADE)
    result = project.run("tests", "-s")
    result.assert_outcomes(passed=4)
    mark = "Mark(name='lmeval', args=(), kwargs={})"
    noted = [f"{name} EvalItem True [('noted', '{name}')] {mark}" for name in ("test_rows[a]", "test_rows[b]")]
    # One of a plugin's own class is made anew.
    expected = [*noted, f"test_own EvalItem False [] {mark}", "test_plain Function True [('noted', 'test_plain')] None"]
    lines = [line for line in result.outlines if line.startswith("MADE")]
    assert [f"MADE {each}" for each in expected] == lines
