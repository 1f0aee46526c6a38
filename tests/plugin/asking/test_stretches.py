"""Examples that have their answers run in one call of the hooks, and what one prints, logs or warns of is its own."""

from __future__ import annotations

import random
from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest

from tests.plugin.asking.test_turns_unseen import seen

if TYPE_CHECKING:
    from tests.conftest import Project

# What the model says to an example is what the metric does; the others are right and quiet.
ACTS = {
    "print": "print('printed')",
    "print-err": "print('printed', file=sys.stderr)",
    "descriptor": "os.write(1, b'written')",
    "program": "subprocess.run(['echo', 'from a program'])",
    "log": "logging.getLogger('acts').warning('logged')",
    "log-apart": "apart.warning('logged apart')",
    "warn": "warnings.warn('warned of', UserWarning)",
    "thread": "thread = threading.Thread(target=int, args='x'); thread.start(); thread.join()",
    "finalizer": "Broken()",
    "skip": "pytest.skip('not now')",
    "xfail": "pytest.xfail('not yet')",
    "name": "print(os.environ['PYTEST_CURRENT_TEST'])",
    "stream": "sys.stdout = io.StringIO(); print('lost'); sys.stdout = sys.__stdout__",
    "wrong": "0",
}
CONFTEST = f"""
import io, logging, os, subprocess, sys, threading, warnings

import pytest

from pytest_lmeval.types import Metric

ACTS = {ACTS}
apart = logging.getLogger("apart")
apart.propagate = False

class Broken:
    def __del__(self):
        raise ValueError("in a finalizer")

def acts(prediction, targets, extras):
    if prediction in ACTS:
        exec(ACTS[prediction])
    return float(prediction in targets)

def pytest_lmeval_register(registry):
    registry.metrics["acts"] = Metric("acts", acts)
"""
# No stretch ends because its time is over: on a busy machine each would be of one example.
PATIENT = """
from pytest_lmeval.plugin.asking import stretch

stretch._LONGEST_S = 600
"""
COUNTING = """
from pytest_lmeval.plugin.asking.stretch import Stretch

lengths = []
call = Stretch.call

def counted(self, hook):
    try:
        return call(self, hook)
    finally:
        lengths.append(1 + len(self.passed))

Stretch.call = counted

def pytest_unconfigure():
    with open("lengths.txt", "w") as file:
        file.write(" ".join(map(str, lengths)))
"""
FUNCTION = """
import asyncio
from pytest_lmeval import eval_task

@eval_task("numbers", data=[{"id": str(number)} for number in range(20)])
async def test_numbers(row, lm):
    assert row["id"] != "11"

@eval_task("letters", data=[{"id": letter} for letter in "abcde"])
def test_letters(row):
    assert row["id"] != "c"
"""
OPTIONS = [
    ("-rA",),
    ("-v",),
    ("-q",),
    ("-x",),
    ("--maxfail=2",),
    ("--lf",),
    ("--sw",),
    ("-W", "error", "--tb=line"),
    ("-W", "ignore"),
    ("--capture=sys", "-rA"),
    ("--capture=tee-sys",),
    ("-s",),
    ("-p", "no:logging", "-rA"),
    ("-p", "no:warnings", "-rA"),
    ("-p", "no:threadexception"),
    ("-p", "no:faulthandler"),
    ("-o", "faulthandler_timeout=60"),
    ("--log-level=INFO", "-rA"),
    ("--lm-max-errors=2",),
    ("-k", "e1 or e2"),
]


def words(project: Project, *said: str) -> None:
    """Write a task whose examples the model answers so; each is right."""
    project.task("tasks/t.jsonl", *[project.record(f"e{at}", each, metric="acts") for at, each in enumerate(said)])
    project.write("conftest.py", CONFTEST)
    project.write("patient.py", PATIENT)
    project.write("counting.py", COUNTING)
    project.write("pytest.ini", "[pytest]\naddopts = --lm-batch-size=64 -ppatient\n")


def lengths(project: Project, *options: str) -> list[int]:
    """Return how many examples each stretch of a run had."""
    (project.path / "lengths.txt").unlink(missing_ok=True)
    project.run("-pcounting", *options)
    return [*map(int, (project.path / "lengths.txt").read_text().split())]


def test_quiet_examples_are_one_stretch_but_for_the_first_and_the_last_of_their_file(project: Project) -> None:
    words(project, *["yes"] * 20)
    assert [18] == lengths(project)


@pytest.mark.parametrize("act", [each for each in ACTS if each != "stream"])
def test_an_example_that_is_heard_ends_its_stretch(project: Project, act: str) -> None:
    words(project, *["yes"] * 5, act, *["yes"] * 6)
    found = lengths(project)
    # A wrong one is right here, as its target is what the model says.
    assert ([10] if act == "wrong" else [5, 5]) == found


@pytest.mark.parametrize(
    "options",
    [
        ("-s",),
        ("--capture=tee-sys",),
        ("-pno:warnings",),
        ("-ofaulthandler_timeout=60",),
        ("-prandomly",),
    ],
    ids=" ".join,
)
def test_each_has_a_call_of_its_own_where_somebody_could_notice(project: Project, options: tuple[str, ...]) -> None:
    words(project, *["yes"] * 12)
    project.write("pytest.ini", "[pytest]\naddopts = --lm-batch-size=64 -ppatient -pcounting\n")
    project.run(*options).assert_outcomes(passed=12)
    assert {1} == {*map(int, (project.path / "lengths.txt").read_text().split())}


@pytest.mark.parametrize(("marked", "failed"), [(2, 0), (4, 1)])
def test_a_filter_of_warnings_is_for_the_example_that_is_marked(project: Project, marked: int, failed: int) -> None:
    words(project, "yes", "yes", "yes", "yes", "warn", "yes", "yes")
    mark = f"items[{marked}].add_marker(pytest.mark.filterwarnings('error'))"
    conftest = f"{CONFTEST}\n\ndef pytest_collection_modifyitems(items):\n    {mark}\n"
    project.write("conftest.py", conftest)
    project.run("-rA").assert_outcomes(failed=failed, passed=7 - failed, warnings=1 - failed)


def test_examples_that_take_their_time_are_reported_one_by_one(project: Project) -> None:
    words(project, *["slow"] * 6)
    project.edit(
        "conftest.py", "    if prediction in ACTS:", "    import time; time.sleep(0.1)\n    if prediction in ACTS:"
    )
    project.write("pytest.ini", "[pytest]\naddopts = --lm-batch-size=64\n")
    assert [1, 1, 1, 1] == lengths(project)


def test_eval_functions_that_have_run_are_in_stretches(project: Project) -> None:
    words(project, "yes")
    project.write("test_f.py", FUNCTION)
    found = lengths(project, "test_f.py")
    assert sum(found) == 23
    assert max(found) > 1


def drawn(chance: random.Random) -> list[str]:
    return [chance.choice([*ACTS]) if chance.random() < 0.3 else "yes" for _ in range(30)]


@pytest.mark.parametrize(
    "options", [OPTIONS[0], *(pytest.param(each, marks=pytest.mark.again) for each in OPTIONS[1:])]
)
def test_nothing_shows_that_examples_ran_in_a_stretch(project: Project, options: tuple[str, ...]) -> None:
    chance = random.Random(" ".join(options))
    words(project, *drawn(chance))
    project.write("test_evals.py", FUNCTION)
    assert [] == [*unified_diff(seen(project, "plain", options), seen(project, "auto", options), n=0)]


def test_examples_of_a_stretch_that_is_interrupted_are_in_the_ledger(project: Project) -> None:
    words(project, *["yes"] * 5, "interrupt", *["yes"] * 3)
    project.edit(
        "conftest.py",
        "    if prediction in ACTS:",
        "    if prediction == 'interrupt':\n        raise KeyboardInterrupt\n    if prediction in ACTS:",
    )
    found = lengths(project)
    assert [5] == found
    assert {f"e{number}" for number in range(5)} == {name.rpartition(":")[2] for name in project.ledger()}
