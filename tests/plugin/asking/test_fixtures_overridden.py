"""The fixtures of a run are the user's to override, as any fixture of pytest."""

from __future__ import annotations

import pytest

from tests.conftest import BOTH, Project

LOUD = """
import pytest

class Loud:
    name = "loud.v1"

    def __init__(self, inner=None):
        self.inner = inner

    def generate(self, prompts):
        return [answer.upper() for answer in self.inner.generate(prompts)] if self.inner else ["LOUD"] * len(prompts)
"""
WRAPPING = """
@pytest.fixture(scope="session")
def lm_adapter(lm_adapter):
    return Loud(lm_adapter)
"""
REPLACING = """
@pytest.fixture(scope="session")
def lm_adapter():
    return Loud()
"""


def test_an_override_may_wrap_the_adapter_of_the_command_line(project: Project) -> None:
    project.write("conftest.py", LOUD + WRAPPING)
    project.task("tasks/t.jsonl", *[project.spec(f"e{n}", f"word{n}", target=f"WORD{n}") for n in range(3)])
    project.run().assert_outcomes(passed=3)
    assert "loud.v1" == project.board()["adapter"]


@pytest.mark.parametrize("processes", BOTH)
def test_an_override_needs_no_adapter_option(project: Project, processes: str) -> None:
    project.write("conftest.py", LOUD + REPLACING)
    project.task("tasks/t.jsonl", project.spec("a", "x", target="LOUD"))
    result = project.run_pytest(processes, "tasks")
    result.assert_outcomes(passed=1)
    assert "loud.v1" == project.board()["adapter"]


def test_an_override_of_a_sub_folder_holds_there(project: Project) -> None:
    project.write("tasks/deep/conftest.py", LOUD + REPLACING)
    project.task("tasks/deep/t.jsonl", project.spec("a", "x", target="LOUD"))
    project.task("tasks/u.jsonl", project.spec("a", "x", target="x"))
    project.run_pytest("tasks/deep").assert_outcomes(passed=1)
    assert "loud.v1" == project.board()["adapter"]


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_a_second_adapter_in_one_run_is_an_error_that_names_both(project: Project, processes: str) -> None:
    project.write("tasks/deep/conftest.py", LOUD + REPLACING)
    project.task("tasks/deep/t.jsonl", project.spec("a", "x", target="LOUD"))
    project.task("tasks/u.jsonl", project.spec("a", "x"))
    result = project.run(processes, "--lm-batch-size=1")
    assert 0 != result.ret
    result.stdout.re_match_lines([r".*one adapter.*(loud\.v1.*stub\.v1|stub\.v1.*loud\.v1).*"])
    board = project.board()
    assert not board["complete"]
    assert board["overall_score"] is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("None", "the fixture lm_adapter returned None; expected an adapter"),
        ("42", "adapter 'fixture lm_adapter' is a int without"),
    ],
)
def test_an_override_that_is_no_adapter_ends_the_run(project: Project, given: str, reason: str) -> None:
    project.write(
        "conftest.py", f"import pytest\n\n@pytest.fixture(scope='session')\ndef lm_adapter():\n    return {given}\n"
    )
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", "x") for n in range(40)])
    result = project.run()
    assert 3 == result.ret
    board = project.board()
    assert board["gate"]["reasons"][0].startswith(f"stopped: {reason}")
    assert board["counts"]["errors"] <= 2
    assert 0 == result.stdout.str().count("site-packages")


def test_an_adapter_that_cannot_be_set_up_leaves_no_example_scored(project: Project) -> None:
    broken = (
        "import pytest\n\n@pytest.fixture(scope='session')\ndef lm_adapter():\n    raise OSError('no such model')\n"
    )
    project.write("conftest.py", broken)
    project.task("tasks/t.jsonl", *[project.record(f"e{n}", "x") for n in range(4)])
    result = project.run()
    assert 3 == result.ret
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["*no such model*"])
    board = project.board()
    assert (4, 0) == (board["counts"]["errors"], board["counts"]["scored"])
    assert not board["complete"]


CLOSING = """
from model import Model

class Closing(Model):
    def close(self):
        with open("closed.txt", "a") as file:
            file.write("c")
"""


def test_an_adapter_is_closed_once_at_the_end(project: Project) -> None:
    project.write("closing.py", CLOSING)
    project.small_tasks()
    project.run_pytest("--lm-adapter=closing:Closing")
    assert "c" == (project.path / "closed.txt").read_text()


RENDER = """
import pytest
from pytest_lmeval import Message

@pytest.fixture(scope="session")
def lm_render():
    return render

def render(example):
    if example.id == "broken":
        raise KeyError("no template")
    if example.id == "number":
        return 5
    if example.id == "messages":
        return [Message("system", "be brief"), {"role": "user", "content": "say: hi"}]
    return f"please say: {example.targets[0]}"
"""


def test_prompts_may_be_rendered_otherwise_and_a_fault_stays_with_its_example(project: Project) -> None:
    project.write("conftest.py", RENDER)
    records = [project.record(id, "x", target="hi") for id in ("text", "broken", "messages", "number")]
    project.task("tasks/t.jsonl", *records)
    result = project.run("--lm-include-per-example")
    assert 3 == result.ret
    result.assert_outcomes(passed=2, failed=2)
    assert [["please say: hi", "be brief\n\nsay: hi"]] == project.calls()
    statuses = {id: record["status"] for id, record in project.examples().items()}
    assert {"t:text": "passed", "t:broken": "error", "t:messages": "passed", "t:number": "error"} == statuses
    result.stdout.fnmatch_lines(["*broken could not be scored*KeyError*", "*number could not be scored*int*"])


SCOPES = """
import pytest

def note(word):
    with open("scopes.txt", "a") as file:
        file.write(word + " ")

@pytest.fixture(autouse=True, scope="module")
def of_the_file(request):
    note("module")
    yield
    note("/module")

@pytest.fixture(autouse=True, scope="session")
def of_the_run():
    note("session")
"""
OF_THE_EXAMPLE = """
@pytest.fixture(autouse=True)
def of_the_example(lm_example, tmp_path):
    note(lm_example.id)
    yield
    note("/" + lm_example.id)
"""


def test_fixtures_of_a_module_are_set_up_once_a_file(project: Project) -> None:
    project.write("conftest.py", SCOPES)
    project.small_tasks()
    project.run().assert_outcomes(passed=4, failed=1)
    assert "session module /module module /module " == (project.path / "scopes.txt").read_text()


def test_fixtures_of_a_function_are_set_up_for_every_example(project: Project) -> None:
    project.write("conftest.py", SCOPES + OF_THE_EXAMPLE)
    project.small_tasks()
    project.run("tasks/words.jsonl").assert_outcomes(passed=2)
    assert "session module blue /blue red /red /module " == (project.path / "scopes.txt").read_text()


def test_the_example_fixture_is_none_in_a_plain_test(project: Project) -> None:
    project.write("test_plain.py", "def test_plain(lm_example):\n    assert lm_example is None\n")
    project.run_pytest().assert_outcomes(passed=1)


def test_a_plain_test_may_use_the_model(project: Project) -> None:
    body = "def test_model(lm_adapter, lm_render):\n    assert lm_adapter.generate(['say: hi']) == ['hi']\n"
    project.write("test_plain.py", body)
    project.run().assert_outcomes(passed=1)
    assert not (project.path / "reports").exists()


SKIPPING = """
import pytest

@pytest.fixture(autouse=True)
def choose(lm_example):
    if lm_example.id == "red":
        pytest.skip("not today")
"""


def test_an_example_may_be_skipped_by_a_fixture_and_is_counted_so(project: Project) -> None:
    project.write("conftest.py", SKIPPING)
    project.small_tasks()
    result = project.run("tasks/words.jsonl")
    assert 0 == result.ret
    result.assert_outcomes(passed=1, skipped=1)
    board = project.board()
    assert board["complete"]
    assert (2, 1, 1) == tuple(board["counts"][key] for key in ("collected", "scored", "skipped"))


LOGGING = """
import logging
import pytest

@pytest.fixture(autouse=True)
def quiet(caplog):
    yield
    assert ["asked"] == [record.getMessage() for record in caplog.get_records("call")]
"""
LOGGING_MODEL = """
import logging

class Model:
    def generate(self, prompts):
        logging.getLogger("model").warning("asked")
        return [prompt.removeprefix("say: ") for prompt in prompts]
"""


def test_the_log_of_an_adapter_is_captured_with_its_example(project: Project) -> None:
    project.write("conftest.py", LOGGING)
    project.write("model.py", LOGGING_MODEL)
    project.task("tasks/t.jsonl", project.record("b", "x", target="y"))
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Captured log call*", "WARNING *model:model.py:* asked"])


ENGINES = {
    "wrapped": """
import pytest

class Counting:
    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def respond(self, key, requests_of):
        print("asked", key.name)
        return self.engine.respond(key, requests_of)

@pytest.fixture(scope="session")
def lm_engine(lm_engine):
    return Counting(lm_engine)
""",
    "own": """
import pytest
from pytest_lmeval.asking.engine import Engine

class Counting(Engine):
    def respond(self, key, requests_of):
        print("asked", key.name)
        return super().respond(key, requests_of)

@pytest.fixture(scope="session")
def lm_engine(lm_adapter):
    return Counting(lm_adapter)
""",
}


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_of_a_project_answers_its_examples(project: Project, kind: str) -> None:
    project.write("conftest.py", ENGINES[kind])
    project.task("tasks/t.jsonl", project.record("a", "x"), project.record("b", "x"))
    result = project.run("-s", "--lm-batch-size=2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*asked a*", "*asked b*"])
    assert project.board()["complete"]
