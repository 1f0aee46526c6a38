"""The process that asks the model is begun while pytest collects, where the run will need one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pytest_lmeval.adapters.resolve import server_kind
from tests.adapters.openai.scripted_server import ScriptedServer, says, serving
from tests.conftest import Project

# Writes down at what point of the session each process was begun, and whether all have ended when pytest has.
CONFTEST = """
import atexit
import json
import subprocess

point, begun = "before", []

class Noted(subprocess.Popen):
    def __init__(self, command, *args, **options):
        super().__init__(command, *args, **options)
        if "pytest_lmeval.asking.host" in str(command):
            begun.append((point, self))

subprocess.Popen = Noted

def pytest_configure(config):
    config.add_cleanup(show)

def pytest_collection_finish():
    global point
    point = "after"

def show():
    # Cleanups run in the other order: this one before those that were added later.
    atexit.register(write)

def write():
    with open("begun.json", "w") as file:
        json.dump([(at, one.returncode is None) for at, one in begun], file)
"""
EVAL = """
from pytest_lmeval import eval_task

@eval_task("words", data=[{"id": "a"}, {"id": "b"}])
async def test_words(row, lm):
    assert (await lm.ask("say yes")).text == "yes"
"""
SLOW_IMPORT = """
import sys
import time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "aiohttp.connector":
            time.sleep(1)

sys.meta_path.insert(0, Slow())
"""
ENDED = False


@pytest.fixture
def server(project: Project) -> Iterator[ScriptedServer]:
    project.write("conftest.py", CONFTEST)
    project.task("tasks/a.jsonl", *[project.record(f"e{n}", f"say {n}", target="yes") for n in range(3)])
    with serving([says("yes")]) as server:
        yield server


def _begun(project: Project, server: ScriptedServer, *options: str, **outcomes: int) -> list[tuple[str, bool]]:
    """Return when each helper process of a run was begun, and whether it was left behind."""
    address = f"--lm-adapter-arg=base_url='{server.base_url}'"
    ran = project.run_pytest("--lm-adapter=openai:m", address, *options)
    ran.assert_outcomes(**(outcomes or {"passed": 3}))
    return [(at, is_left) for at, is_left in json.loads((project.path / "begun.json").read_text())]


def test_a_run_that_needs_one_begins_it_before_it_collects(project: Project, server: ScriptedServer) -> None:
    assert [("before", ENDED)] == _begun(project, server, "--lm-concurrency=32")
    assert 3 == len(server.requests)


def test_with_few_requests_in_flight_there_is_none(project: Project, server: ScriptedServer) -> None:
    assert [] == _begun(project, server, "--lm-concurrency=31")


def test_one_that_turns_out_not_to_be_needed_is_ended(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_plain.py", "def test_nothing(): pass\n")
    assert [("before", ENDED)] == _begun(project, server, "--lm-concurrency=32", "-k", "nothing", passed=1)


def test_a_folder_of_bad_tasks_leaves_none_behind(project: Project, server: ScriptedServer) -> None:
    project.write("tasks/b.jsonl", "{}\n")
    assert [("before", ENDED)] == _begun(project, server, "--lm-concurrency=32", errors=1)
    assert [] == server.requests


def test_what_only_collects_begins_none(project: Project, server: ScriptedServer) -> None:
    assert [] == _begun(project, server, "--lm-concurrency=32", "--collect-only", passed=0)


def test_a_session_of_plain_tests_begins_none(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_plain.py", "def test_nothing(): pass\n")
    assert [] == _begun(project, server, "--lm-concurrency=32", "tests", passed=1)


def test_eval_functions_have_one_too(project: Project, server: ScriptedServer) -> None:
    project.write("tests/test_words.py", EVAL)
    assert [("before", ENDED)] == _begun(project, server, "--lm-concurrency=32", "tests", passed=2)


def test_what_ray_asks_needs_none(project: Project) -> None:
    profile = (
        '[tool.lmeval.adapters.small]\nadapter = "ray:openai:m"\n[tool.lmeval.adapters.own]\nadapter = "openai:m"\n'
    )
    project.write("pyproject.toml", profile)
    specs = ["small", "own", "ray:openai:m", "openai:m", "anthropic:m", "toy", "m:Model", ""]
    found = {spec: server_kind(spec, project.path) for spec in specs}
    assert {"own": "openai", "openai:m": "openai", "anthropic:m": "anthropic"} == {k: v for k, v in found.items() if v}


@pytest.mark.command_line
def test_the_import_of_the_client_takes_no_time_from_the_first_requests(
    project: Project, server: ScriptedServer
) -> None:
    # aiohttp takes longer than that to be imported, as everything does that is slow.
    project.write("conftest.py", SLOW_IMPORT)
    address = f"--lm-adapter-arg=base_url='{server.base_url}'"
    ran = project.run_pytest("--lm-adapter=openai:m", address, "--lm-timeout=0.7", "--lm-retries=0")
    ran.assert_outcomes(passed=3)


def test_each_of_several_models_has_its_own(project: Project, server: ScriptedServer) -> None:
    options = ["--lm-adapter=b=openai:n", "--lm-concurrency=32"]
    begun = _begun(project, server, *options, passed=6)
    assert [("before", ENDED)] * 2 == begun
