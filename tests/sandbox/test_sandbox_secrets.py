"""What the caller expects is nowhere in the process that runs the program."""

from __future__ import annotations

import os

import pytest

from pytest_lmeval.metrics.code_exec import code_exec, code_exec_expressions
from pytest_lmeval.sandbox import Limits, Sandbox
from tests.sources import source

PROC = pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs /proc")


SEARCH = source("searched_secrets/program.py")


@PROC
def test_the_search_finds_what_is_there(process: Sandbox) -> None:
    planted = SEARCH + "\nhidden = 'SECRET' + '41'\n"

    assert 1.0 == code_exec(planted, ["ok"], {"io_pairs": [[41, True]]}, process).value


@PROC
def test_expected_values_of_pairs_are_nowhere_in_the_process(process: Sandbox) -> None:
    pairs = [[41, False], [42, "SECRET41"], [43, ["SECRET42", "SECRET41"]]]

    score = code_exec(SEARCH, ["SECRET41"], {"io_pairs": pairs}, process)

    # All three calls return False, which is what the first expects.
    assert ("assertion_fail", 1) == (score.details["code_status"], score.details["passed"])
    assert "is false" in score.details["reason"]


@PROC
def test_literals_of_expressions_and_sources_of_tests_are_nowhere_in_the_process(process: Sandbox) -> None:
    targets = ["f(41) == False", "f(40 + 1) != 'SECRET41'", "f(41) not in ['SECRET41']"]
    tests = "def check(candidate):\n    assert candidate(41) is False, 'SECRET41'\n"

    assert 1.0 == code_exec_expressions(SEARCH, targets, {}, process).value
    assert 1.0 == code_exec(SEARCH, ["SECRET41"], {"tests": tests, "entry_point": "f"}, process).value


@PROC
def test_a_later_call_is_not_in_the_process_during_an_earlier_one(sandbox: Sandbox) -> None:
    program = (
        "import os, select\n"
        "fds = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
        "def f(x): return select.select(fds, [], [], 0)[0]\n"
    )

    run = sandbox.call(program, "f", [[1], [2], [3]], Limits())

    assert "pass" == run.status
    assert [[], [], []] == [answer.value for answer in run.answers]


@PROC
def test_the_process_has_its_pipes_and_no_other_descriptor(sandbox: Sandbox) -> None:
    inlet, outlet = os.pipe()
    os.set_inheritable(outlet, True)
    program = (
        "import os\ndef f():\n    links = [f'/proc/self/fd/{n}' for n in range(64)]\n"
        "    return [os.readlink(link) for link in links if os.path.lexists(link)]"
    )

    run = sandbox.call(program, "f", [[]], Limits())
    os.close(inlet)
    os.close(outlet)

    links = run.answers[0].value
    assert 5 == len(links)
    assert ["/dev/null"] == [link for link in links if not link.startswith("pipe:")]


def test_nothing_of_the_users_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    monkeypatch.setenv("API_KEY", "hunter2")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")

    run = sandbox.call("import os\ndef f(): return dict(os.environ)", "f", [[]], Limits())

    environment = dict(map(tuple, run.answers[0].value["dict"]))
    assert not {"API_KEY", "PYTHONPATH"} & set(environment)
    assert ("0", "UTC") == (environment["PYTHONHASHSEED"], environment["TZ"])
