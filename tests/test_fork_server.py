"""A run in a fork is the run of the real command: what it finds, what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.fork_server import ForkServer

TASKLESS = "[pytest]\nfilterwarnings = error\n"
BothWays = Callable[..., tuple[Any, Any]]


@pytest.fixture
def both_ways(project: Project, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> BothWays:
    """Provide a function that runs pytest in a fork and as a command and returns what ``look`` finds after each."""
    command = MethodType(pytest.Pytester.popen, project.pytester)

    def run(look: Callable[[pytest.RunResult], Any], *options: str) -> tuple[Any, Any]:
        found = []
        for popen in (partial(fork_server.popen, command), command):
            monkeypatch.setattr(project.pytester, "popen", popen)
            found.append(look(project.run(*options, "-pno:cacheprovider", "--basetemp=temp")))
        return found[0], found[1]

    return run


def printed(result: pytest.RunResult) -> tuple[int, str, str]:
    """Return the exit code and both streams without times and the order of workers."""
    text = re.sub(r"([ =])\1+", r"\1", result.stdout.str())  # as wide as the times are long
    text = re.sub(r"(?<=harness )\d+\.\d+ ms|(?<=model )\d+\.\d+ ms", "TIME", text)
    text = re.sub(r"\d+\.\d+(s( \(.*\))? =)?$|(?<=^took )\d+\.\d+ s", "TIME", text, flags=re.MULTILINE)
    text = re.sub(r"^[.F]{2,}|^\[gw\d\]", "WORKERS", text, flags=re.MULTILINE)
    return int(result.ret), text, result.stderr.str()


@pytest.mark.parametrize("processes", ["-n0", pytest.param("-n1", marks=pytest.mark.again)])
def test_a_fork_finds_what_the_command_finds(
    project: Project, both_ways: BothWays, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    project.write("pytest.ini", TASKLESS)
    project.copy("seen", "test_seen.py")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")

    def seen(result: pytest.RunResult) -> Any:
        result.assert_outcomes(passed=1)
        return json.loads((project.path / "seen.json").read_text().replace("runpytest-1", "runpytest-0"))

    fork, command = both_ways(seen, processes)
    assert command == fork


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--lm-no-such"], 4),
        pytest.param(["-k", "none"], 5, marks=pytest.mark.slow),
        pytest.param(["-n2"], 1, marks=pytest.mark.again),
        pytest.param(["--fixtures", "-v"], 0, marks=pytest.mark.again),
    ],
)
def test_a_fork_prints_what_the_command_prints(
    project: Project, both_ways: BothWays, options: list[str], code: int
) -> None:
    project.small_tasks()
    project.run()  # the first run in a folder says what to do next
    fork, command = both_ways(printed, *options)
    assert command == fork
    assert code == fork[0]


@pytest.mark.parametrize(
    ("end", "code"), [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9), ("sys.exit(8)", 8), ("os.abort()", -6)]
)
def test_a_fork_ends_as_the_command_ends(project: Project, end: str, code: int) -> None:
    project.write("pytest.ini", TASKLESS)
    project.write("conftest.py", f"import os, sys\ndef pytest_unconfigure(): {end}\n")
    assert code == project.run().ret  # of the command, with --all


def test_a_failure_says_that_runs_were_forks_and_how_to_run_them_as_commands(
    project: Project, request: pytest.FixtureRequest
) -> None:
    item = request.node
    call = pytest.CallInfo.from_call(lambda: pytest.fail("on purpose"), "call")
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    notes = [text for title, text in report.sections if title == "how pytest ran in this test"]
    if request.config.getoption("all"):
        assert [] == notes
    else:
        (note,) = notes
        assert f'pytest --all "{item.nodeid}"' in note
    passed = item.ihook.pytest_runtest_makereport(item=item, call=pytest.CallInfo.from_call(lambda: None, "call"))
    assert "how pytest ran in this test" not in dict(passed.sections)


@pytest.mark.command_line
def test_a_failure_of_a_command_says_nothing_of_forks(project: Project, request: pytest.FixtureRequest) -> None:
    call = pytest.CallInfo.from_call(lambda: pytest.fail("on purpose"), "call")
    report = request.node.ihook.pytest_runtest_makereport(item=request.node, call=call)
    assert "how pytest ran in this test" not in dict(report.sections)


def test_a_run_that_takes_too_long_is_killed(project: Project) -> None:
    project.write("test_slow.py", "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    with pytest.raises(project.pytester.TimeoutExpired):
        project.run_pytest(timeout=5)
    with pytest.raises(ProcessLookupError):
        os.kill(int((project.path / "pid").read_text()), 0)
    assert 5 == project.run_pytest("-k", "nothing", "--ignore=test_slow.py").ret


@pytest.mark.again
def test_a_run_for_which_python_starts_otherwise_is_no_fork(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("test_hash.py", "import sys\ndef test_hash(): assert 0 == sys.flags.hash_randomization\n")
    project.run_pytest().assert_outcomes(failed=1)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    project.run_pytest().assert_outcomes(passed=1)


def test_tests_of_a_tree_that_is_not_installed_are_refused(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("conftest.py", "needs.py", "examples.py", "sources.py", "fork_server.py"):
        shutil.copy(Path(__file__).with_name(name), tests / name)
    (tests / "test_any.py").write_text("def test_any(): pass\n")

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    code, told = run("-mpytest", "tests", "-pno:asyncio", "-pno:anyio", "--rootdir=.", "--import-mode=importlib")
    assert 4 == code
    assert f"the tests of {tmp_path} would test {Path(__file__).parents[1]}" in told
    # The server is not asked by the tests of its own tree alone.
    code, told = run("tests/fork_server.py", "0")
    assert 1 == code
    assert f"pip install -e {tmp_path}" in told
