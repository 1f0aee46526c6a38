"""Examples that have their answers run in one call of the hooks where no code of a project does; nothing shows it."""

from __future__ import annotations

import json
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from functools import wraps
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.loading import default_registry, load_tasks
from pytest_lmeval.metrics import exact_match
from pytest_lmeval.plugin.asking.stretch import interrupts_later, runs_ours_alone
from pytest_lmeval.plugin.record.ending import INCOMPLETE
from tests import needs
from tests.plugin.asking.test_turns_unseen import seen

if TYPE_CHECKING:
    from tests.conftest import Project

# What the model says to an example is what a metric of the project does; pytest's own outcomes are among it.
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
# No stretch ends because its time is over: on a busy machine each would be of one example. And what scores has faults.
PATIENT = """
import signal, time, warnings

from pytest_lmeval.formats import jsonl
from pytest_lmeval.plugin.asking import stretch, turn

stretch._LONGEST_S = {longest}
apply_metric, end_turn = jsonl.apply_metric, turn.end_turn

def applied(metric, prediction, *given):
    if prediction.text == "warn":
        warnings.warn("warned of", UserWarning)
    if prediction.text == "slow":
        time.sleep(0.1)
    if prediction.text == "interrupt":
        raise KeyboardInterrupt
    return apply_metric(metric, prediction, *given)

def ended(item):
    end_turn(item)
    if item.name == "interrupted":
        signal.raise_signal(signal.SIGINT)

jsonl.apply_metric, turn.end_turn = applied, ended
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
LOGLIKELIHOOD = """
from pytest_lmeval.types import LogProb

class Model:
    name = "stub.v1"

    def loglikelihood(self, requests):
        return [LogProb(-0.5, (-0.5,), True, ids=("eight",)) for _ in requests]
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


def project_of(project: Project, *said: str, metric: str = "exact_match", longest: float = 600) -> None:
    """Write a task whose examples the model answers so; each but ``wrong`` is right."""
    records = [
        project.record(f"e{at}", each, None if each != "wrong" else "right", metric=metric)
        for at, each in enumerate(said)
    ]
    project.task("tasks/t.jsonl", *records)
    project.write("conftest.py", CONFTEST)
    project.write("patient.py", PATIENT.format(longest=longest))
    project.write("counting.py", COUNTING)
    project.write("pytest.ini", "[pytest]\naddopts = --lm-batch-size=64 -ppatient\n")


def lengths(project: Project, *options: str) -> list[int]:
    """Return how many examples each stretch of a run had."""
    (project.path / "lengths.txt").unlink(missing_ok=True)
    project.run("-pcounting", *options)
    return [*map(int, (project.path / "lengths.txt").read_text().split())]


@pytest.mark.parametrize("options", [(), ("-s",), ("--capture=sys",), ("-v",), ("-prandomly",)], ids=" ".join)
def test_examples_are_one_stretch_but_for_the_first_and_the_last_of_their_file(
    project: Project, options: tuple[str, ...]
) -> None:
    if "-prandomly" in options:
        needs.installed("pytest_randomly")
    project_of(project, *["yes"] * 20)
    assert [18] == lengths(project, *options)


@pytest.mark.parametrize("said", ["wrong", "warn"])
def test_an_example_that_fails_or_warns_ends_its_stretch(project: Project, said: str) -> None:
    project_of(project, *["yes"] * 5, said, *["yes"] * 6)
    assert [5, 5] == lengths(project)


def test_examples_that_take_their_time_are_reported_one_by_one(project: Project) -> None:
    project_of(project, *["slow"] * 6, longest=0.05)
    assert [1, 1, 1, 1] == lengths(project)


RENDER = """
import pytest
@pytest.fixture(scope="session")
def lm_render():
    return lambda example: example.prompt
"""
ENGINE = """
import pytest

class Wrapped:
    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        return getattr(self.engine, name)

@pytest.fixture(scope="session")
def lm_engine(lm_engine):
    return Wrapped(lm_engine)
"""
ADAPTER = """
import pytest

class Other:
    name = "other"

@pytest.fixture(scope="session")
def lm_adapter():
    return Other()
"""


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("conftest.py", RENDER, ()),
        ("conftest.py", "def pytest_runtest_logfinish(): pass", ()),
        ("conftest.py", "def pytest_runtest_protocol(): pass", ()),
        ("conftest.py", "def pytest_runtestloop(session): pass", ()),
        ("empty.txt", "", ("-pno:warnings",)),
    ],
)
def test_each_has_a_call_of_its_own_where_code_of_a_project_may_run_or_somebody_could_notice(
    project: Project, name: str, content: str, options: tuple[str, ...]
) -> None:
    project_of(project, *["yes"] * 12)
    project.write(name, content)
    found = lengths(project, *options)
    assert {1} >= {*found}
    assert 12 == len(project.ledger())


@pytest.mark.parametrize(
    ("options", "loops"), [((), 1), (("-pno:warnings",), 0), (("--lm-items=plain",), 0), (("-n1",), 0)], ids=str
)
def test_pytest_runs_the_items_itself_where_none_could_be_in_a_stretch(
    project: Project, options: tuple[str, ...], loops: int
) -> None:
    project_of(project, *["yes"] * 3)
    note = "open('loops.txt', 'a').write(str(int(session.config.pluginmanager.hasplugin('lmeval-loop'))))"
    project.write("conftest.py", f"{CONFTEST}\ndef pytest_sessionfinish(session):\n    {note}\n")
    project.run(*options)
    assert {str(loops)} == {*(project.path / "loops.txt").read_text()}


def test_examples_with_a_metric_of_the_project_are_in_no_stretch(project: Project) -> None:
    project_of(project, *["yes"] * 8, metric="acts")
    assert [1] * 6 == lengths(project)


@pytest.mark.parametrize("content", [RENDER, ENGINE, ADAPTER])
def test_examples_of_a_folder_whose_fixtures_are_its_own_are_in_no_stretch(project: Project, content: str) -> None:
    project_of(project, *["yes"] * 8)
    project.task("tasks/below/u.jsonl", *(project.record(f"u{number}", "yes") for number in range(8)))
    project.write("tasks/below/conftest.py", content)
    # Without --lm-max-errors examples fail for another adapter, and a failure ends a stretch.
    found = lengths(project, "tasks/t.jsonl", "tasks/below/u.jsonl", "--lm-max-errors=20")
    assert [6, *[1] * 6] == found


def test_no_record_is_in_a_stretch_while_a_task_in_python_makes_requests(project: Project) -> None:
    needs.installed("math_verify")
    project.copy("python_tasks")
    project_of(project, *["yes"] * 8)
    found = lengths(project, "tasks/t.jsonl", "tasks/task_quizzes.py")
    assert {1} == {*found}
    assert [6] == lengths(project, "tasks/t.jsonl")


@pytest.mark.parametrize(
    ("metric", "fields", "expected"),
    [
        ("exact_match", {}, True),
        ("f1", {}, True),
        ("math_equal", {}, False),
        ("rubric", {"extras": {"rubric": "Is it fine?"}}, False),
        ("exact_match", {"extras": {"post_process": "of_a_project"}}, False),
        ("like_ours", {}, False),
        ("is_json", {}, False),
        (None, {"checks": [{"metric": "of_a_project", "targets": ["t"]}]}, False),
        (None, {"turns": [{"user": "p", "targets": ["t"], "metric": "of_a_project"}]}, False),
    ],
)
def test_it_is_known_which_metrics_run_no_code_but_ours(
    project: Project, metric: str | None, fields: dict[str, object], expected: bool
) -> None:
    registry = default_registry()
    registry.add_rule("of_a_project", str.strip)
    registry.add_metric("of_a_project", lambda prediction, targets, extras: 1.0)
    registry.add_metric("like_ours", wraps(exact_match)(lambda *given: exact_match(*given)))
    registry.metrics["is_json"] = registry.metrics["like_ours"]
    record: dict[str, object] = {"id": "a", **fields}
    if "turns" not in fields:
        record["prompt"] = "p"
    if metric is not None:
        record |= {"targets": ["t"], "metric": metric}
    project.task("tasks/t.jsonl", record)
    (task,) = load_tasks(project.path / "tasks/t.jsonl", registry=registry)
    assert expected is runs_ours_alone(task, task.examples[0])


def test_examples_that_are_scored_by_log_likelihoods_are_in_stretches(project: Project) -> None:
    project_of(project, "yes")
    project.write("model.py", LOGLIKELIHOOD)
    entry = {"label": "legs", "dataset_uri": "legs.jsonl", "num_fewshot": [0], "icl_task_type": "language_modeling"}
    project.write("core/core.yaml", json.dumps({"icl_tasks": [entry]}))
    project.write("core/eval_meta_data.csv", "Eval Task,Random baseline\nlegs,0\n")
    records = [json.dumps({"context": f"{number}:", "continuation": "eight"}) for number in range(12)]
    project.write("core/eval_data/legs.jsonl", "\n".join(records))
    assert [10] == lengths(project, "core/core.yaml")


@pytest.mark.parametrize("marked", [2, 4])
def test_a_filter_of_warnings_is_for_the_example_that_is_marked(project: Project, marked: int) -> None:
    project_of(project, "yes", "yes", "yes", "yes", "warn", "yes", "yes")
    mark = f"items[{marked}].add_marker(pytest.mark.filterwarnings('ignore'))"
    project.write("conftest.py", f"{CONFTEST}\n\ndef pytest_collection_modifyitems(items):\n    {mark}\n")
    project.run("-rA").assert_outcomes(passed=7, warnings=int(marked == 2))


@pytest.mark.parametrize(
    "change",
    [
        "def pytest_collection_modifyitems(items): items.extend(items[:6])",
        "def pytest_collection_finish(session): session.items.reverse()",
        "def pytest_collection_finish(session): session.items[:0] = session.items[-3:]",
        "def pytest_collection_finish(session): del session.items[2:6]",
    ],
)
def test_every_item_runs_whatever_hooks_make_of_the_list_of_items(project: Project, change: str) -> None:
    project_of(project, *["yes"] * 12)
    project.write("conftest.py", f"{CONFTEST}\n{change}\n")
    plain, auto = (project.run("-v", f"--lm-items={how}").parseoutcomes() for how in ("plain", "auto"))
    assert plain == auto
    assert plain["passed"] >= 8


AGAIN = """
import pytest

runs = []

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session):
    result = yield
    runs.append(session.testscollected)
    return result if len(runs) > 1 else session.config.hook.pytest_runtestloop(session=session)
"""


def test_every_item_runs_again_where_a_wrapper_calls_the_loop_again(project: Project) -> None:
    project_of(project, *["yes"] * 12)
    project.write("conftest.py", f"{CONFTEST}\n{AGAIN}\n")
    plain, auto = (project.run("-v", f"--lm-items={how}").parseoutcomes() for how in ("plain", "auto"))
    assert plain == auto
    assert plain["passed"] == 24


def test_eval_functions_that_have_run_are_in_stretches(project: Project) -> None:
    project_of(project, "yes")
    project.write("test_f.py", FUNCTION)
    found = lengths(project, "test_f.py")
    assert sum(found) == 23
    assert max(found) > 1


def drawn(chance: random.Random, *choices: str) -> list[str]:
    """Return what the model says to 30 examples, to most of them ``yes``."""
    return [chance.choice(choices) if chance.random() < 0.3 else "yes" for _ in range(30)]


@pytest.mark.parametrize("metric", ["exact_match", pytest.param("acts", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options", [OPTIONS[0], *(pytest.param(each, marks=pytest.mark.again) for each in OPTIONS[1:])], ids=" ".join
)
def test_nothing_shows_that_examples_ran_in_a_stretch(project: Project, options: tuple[str, ...], metric: str) -> None:
    chance = random.Random(" ".join(options))
    choices = ("wrong", "warn") if metric == "exact_match" else (*ACTS, "wrong")
    project_of(project, *drawn(chance, *choices), metric=metric)
    project.write("test_evals.py", FUNCTION)
    assert [] == [*unified_diff(seen(project, "plain", options), seen(project, "auto", options), n=0)]


def test_examples_of_a_stretch_whose_last_is_interrupted_are_in_the_ledger(project: Project) -> None:
    project_of(project, *["yes"] * 5, "interrupt", *["yes"] * 3)
    assert [5] == lengths(project)
    assert [f"t:e{number}" for number in range(5)] == [*project.ledger()]


def test_examples_of_a_stretch_that_is_interrupted_while_it_is_reported_are_in_the_ledger(project: Project) -> None:
    project_of(project, *["yes"] * 12)
    project.edit("patient.py", '"interrupted"', '"e3"')
    result = project.run()
    assert pytest.ExitCode.INTERRUPTED == result.ret
    assert [f"t:e{number}" for number in range(11)] == [*project.ledger()]


# Ctrl-C, and a signal that a project handles, at an example that is not yet in the ledger and at one that is.
SIGNALS = """
import signal

import pytest

from pytest_lmeval.plugin.asking import item, turn

attach, end_turn = item.attach, turn.end_turn

def ended(*_):
    pytest.exit("that will do")

def attached(example, *given):
    if example.name == "e3":
        signal.raise_signal(signal.SIGINT)
    attach(example, *given)

def turn_ended(example):
    if example.name == "e3":
        signal.raise_signal(signal.SIGTERM)
    end_turn(example)

item.attach, turn.end_turn = {changed}
signal.signal(signal.SIGTERM, ended)
"""


@pytest.mark.parametrize(
    ("changed", "handled", "said", "code"),
    [
        ("attached, end_turn", "", "KeyboardInterrupt", pytest.ExitCode.INTERRUPTED),
        ("attached, end_turn", "signal.signal(signal.SIGINT, ended)", "Exit: that will do", INCOMPLETE),
        ("attach, turn_ended", "", "Exit: that will do", INCOMPLETE),
        ("attached, turn_ended", "", "KeyboardInterrupt", pytest.ExitCode.INTERRUPTED),
    ],
)
def test_no_example_is_missing_from_the_middle_where_a_signal_ends_the_session(
    project: Project, changed: str, handled: str, said: str, code: int
) -> None:
    project_of(project, *["yes"] * 6, "wrong", *["yes"] * 6)
    project.write("signals.py", SIGNALS.format(changed=changed) + handled)
    result = project.run("-psignals", "-v")
    assert code == result.ret
    result.stdout.fnmatch_lines([f"*{said}*"])
    result.assert_outcomes(passed=6, failed=1)
    assert [f"t:e{number}" for number in range(7)] == [*project.ledger()]


def test_ctrl_c_is_as_it_was_when_a_stretch_has_been_reported(project: Project) -> None:
    project_of(project, *["yes"] * 8)
    check = "import signal\n\ndef pytest_unconfigure(): print(signal.getsignal(signal.SIGINT).__name__)\n"
    project.write("conftest.py", CONFTEST + check)
    project.run("-s").stdout.fnmatch_lines(["default_int_handler"])


def test_ctrl_c_is_left_alone_beside_the_main_thread() -> None:
    def handler() -> object:
        with interrupts_later():
            return signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(handler).result() is signal.getsignal(signal.SIGINT)
