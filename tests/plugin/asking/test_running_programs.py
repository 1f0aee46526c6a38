"""Programs that a model wrote, in a run: the level they run at, what happens where there is none, and overlap."""

from __future__ import annotations

import pytest

from pytest_lmeval.sandbox import require_level
from tests import needs
from tests.conftest import BOTH, Project

LACKING = """
import pytest_lmeval.sandbox

def lacks(level):
    return None if level != "confined" else "level confined lacks landlock; --lm-sandbox process opts out"

pytest_lmeval.sandbox.require_level = lacks
"""


def code(project: Project, id: str, program: str, target: str) -> dict[str, object]:
    return project.spec(
        id, program, target=target, category="code_exec", metric_name="code_exec", post_process="extract_code_block"
    )


@pytest.fixture
def programs(project: Project) -> Project:
    right = code(project, "right", "def f(): return 2", "f() == 2")
    wrong = code(project, "wrong", "def f(): return 3", "f() == 2")
    project.task("tasks/code.jsonl", right, wrong)
    project.task("tasks/sums.jsonl", project.spec("sum", "4"))
    return project


@pytest.mark.skipif(require_level("confined") is not None, reason="this kernel lacks a layer of confined")
@pytest.mark.parametrize("processes", BOTH)
def test_programs_run_confined_and_the_board_says_so(programs: Project, processes: str) -> None:
    result = programs.run(processes, "--lm-include-per-example")
    assert 1 == result.ret
    if processes == "-n0":
        result.stdout.fnmatch_lines(["lmeval: programs run at sandbox level confined, probed"])
    assert "confined" == programs.board()["manifest"]["sandbox"]
    scores = {id: record["score"] for id, record in programs.examples().items()}
    assert {"code:right": 1.0, "code:wrong": 0.0, "sums:sum": 1.0} == scores


def test_if_the_level_is_missing_tasks_with_programs_are_refused_with_the_cure_and_cost_no_call(
    programs: Project,
) -> None:
    programs.write("conftest.py", LACKING)
    result = programs.run("--lm-include-per-example")
    assert 3 == result.ret
    statuses = {id: record["status"] for id, record in programs.examples().items()}
    assert {"code:right": "error", "code:wrong": "error", "sums:sum": "passed"} == statuses
    reason = "tasks/code.jsonl: task 'code': level confined lacks landlock; --lm-sandbox process opts out"
    assert reason == programs.board()["gate"]["reasons"][0]
    assert [["say: 4"]] == programs.calls()


def test_the_level_may_be_opted_out_of(programs: Project) -> None:
    programs.write("conftest.py", LACKING)
    assert 1 == programs.run("--lm-sandbox=process").ret
    assert "process" == programs.board()["manifest"]["sandbox"]


def test_programs_of_an_adapter_that_is_trusted_run_at_the_best_level_there_is(programs: Project) -> None:
    programs.write("conftest.py", LACKING)
    programs.write("model.py", (programs.path / "model.py").read_text() + "\n    trusted = True\n")
    assert 1 == programs.run().ret
    assert 3 == programs.board()["counts"]["scored"]


def test_a_level_that_is_only_a_name_yet_is_a_usage_error(programs: Project) -> None:
    result = programs.run("--lm-sandbox=isolated")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*isolated is not available*"])


def test_a_run_without_programs_probes_nothing_and_says_nothing_of_them(project: Project) -> None:
    project.small_tasks()
    project.write("conftest.py", "import pytest_lmeval.sandbox as s\ns.require_level = None\n")
    result = project.run("-k", "arith_1")
    assert 0 == result.ret
    result.stdout.no_fnmatch_line("*programs run at*")


@pytest.mark.skipif(require_level("confined") is not None, reason="this kernel lacks a layer of confined")
@pytest.mark.parametrize(("allowed", "score"), [("numpy", 1.0), ("", 0.0)])
def test_installed_packages_are_there_for_programs_if_they_are_allowed(
    project: Project, allowed: str, score: float
) -> None:
    if allowed:
        needs.installed(allowed)
    ini = (project.path / "pytest.ini").read_text()
    project.write("pytest.ini", f"{ini}lm_sandbox_packages = {allowed}\n")
    program = "import numpy\ndef f(): return int(numpy.arange(4).sum())"
    project.task("tasks/code.jsonl", code(project, "a", program, "f() == 6"))
    project.run("--lm-include-per-example")
    assert score == project.examples()["code:a"]["score"]


def test_an_allowed_package_that_is_not_installed_is_named(programs: Project) -> None:
    ini = (programs.path / "pytest.ini").read_text()
    programs.write("pytest.ini", f"{ini}lm_sandbox_packages = nowhere_to_be_found\n")
    result = programs.run()
    assert 0 != result.ret
    assert "nowhere_to_be_found" in result.stdout.str() + result.stderr.str()


def test_programs_of_answers_that_have_arrived_run_before_their_turn(project: Project) -> None:
    project.write(
        "conftest.py",
        "import threading\n"
        "from pytest_lmeval import Score\n"
        "def where(prediction, targets, extras, sandbox):\n"
        "    return Score(1.0, {'thread': threading.current_thread().name})\n"
        "def pytest_lmeval_register(registry):\n"
        "    registry.add_metric('where', where, needs_sandbox=True)\n",
    )
    project.task("tasks/code.jsonl", *[project.record(f"e{n}", "x", metric="where") for n in range(6)])
    assert 0 == project.run("--lm-include-per-example").ret
    threads = [record["details"]["thread"] for record in project.examples().values()]
    assert any(name.startswith("lmeval-score") for name in threads)
