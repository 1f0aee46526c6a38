"""No text from outside gives an order to the machine that runs a job, whatever pytest prints of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.runner_log import ORDERS, commands_in

MODEL = """
class Model:
    name = "model\\n::error::x ##[group]"

    def generate(self, prompts):
        if "RAISE" in prompts[0]:
            raise ValueError(prompts[0])
        return [prompt.removeprefix("say: ") for prompt in prompts]
"""
CONFTEST = """
import logging, sys, warnings
import pytest

def noisy(prediction, targets, extras):
    print(prediction)
    print(prediction, file=sys.stderr)
    logging.getLogger("noisy").warning(prediction)
    warnings.warn(f"look at\\n{prediction}")
    if extras.get("skip"):
        pytest.skip(prediction)
    if extras.get("fails"):
        raise ValueError(prediction)
    return 0.0

def noisy_pass(prediction, targets, extras):
    print(prediction)
    return 1.0

def pytest_lmeval_register(registry):
    registry.add_metric("noisy", noisy)
    registry.add_metric("noisy_pass", noisy_pass)

@pytest.fixture
def broken(lm_example):
    raise ValueError(lm_example.prompt)
"""
# All orders in three texts: a program or a traceback for each of them would be the most of what these tests cost.
JOINED = ["\n".join(ORDERS[start::3]) for start in range(3)]
PROGRAM = """import sys
print({text!r})
print({text!r}, file=sys.stderr)
def f():
    raise ValueError({text!r})"""


@pytest.fixture
def hostile(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Provide tasks whose every text gives orders, as a job of GitHub's sees them."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.write("model.py", MODEL)
    project.write("conftest.py", CONFTEST)
    project.write("pytest.ini", "[pytest]\n")
    project.task("tasks/wrong.jsonl", *[project.record(text, text, target=f"{text}!") for text in ORDERS])
    project.task("tasks/raises.jsonl", *[project.record(text, f"{text} RAISE") for text in ORDERS])
    for name, extras in (("noisy", {}), ("skip", {"skip": True}), ("fails", {"fails": True})):
        records = [{**project.record(text, text, metric="noisy"), "extras": extras} for text in ORDERS]
        project.task(f"tasks/{name}.jsonl", *records)
    project.task("tasks/fine.jsonl", *[project.record(text, text, metric="noisy_pass") for text in ORDERS])
    fields = {"category": "code_exec", "metric_name": "code_exec", "post_process": "none"}
    programs = [
        project.spec(f"p-{number}", PROGRAM.format(text=text), target="f() == 1", **fields)
        for number, text in enumerate(JOINED)
    ]
    project.task("tasks/programs.jsonl", *programs)
    return project


def check(result: pytest.RunResult, *shown: str) -> None:
    """Assert that nothing in the log is a command but our own annotations, and that each of ``shown`` is there."""
    log = result.stdout.str() + "\n" + result.stderr.str()
    ours = [line for line in commands_in(log) if is_annotation(line)]
    assert ours == commands_in(log)
    assert "INTERNALERROR" not in log
    assert [] == [text for text in shown if text not in log]


def is_annotation(line: str) -> bool:
    properties, end, _message = line.removeprefix("::error ").removeprefix("::warning ").partition("::")
    names = [each.partition("=")[0] for each in properties.split(",")]
    return line.startswith(("::error ", "::warning ")) and bool(end) and ["file", "line", "title"] == names


@pytest.mark.parametrize(
    "options",
    [
        ["-v", "-rA"],
        ["-n2", "-rA", "--lm-batch-size=1"],
        ["-vv", "--tb=short", "--color=yes"],
        ["-q", "--tb=native", "--lm-gate=tasks", "--lm-min-score=overall=0.9", "--lm-max-errors=90%"],
        ["--tb=line", "--lm-repeats=2", "--lm-max-errors=100%"],
    ],
)  # fmt: skip
def test_a_run_gives_no_order_but_its_annotations(hostile: Project, options: list[str]) -> None:
    result = hostile.run(*options, "--lm-batch-size=1")
    assert 0 != result.ret
    check(result, "set-output name=a", "group]", "::error file=tasks/")


def test_what_is_captured_folds_no_log(project: Project) -> None:
    said = "\n".join(("travis_fold:start:a", "--- b", "+++ c", "~~~ d", "^^^ +++"))
    project.write("conftest.py", CONFTEST)
    project.write("model.py", MODEL)
    record = project.record(said, said, metric="noisy")
    project.task("tasks/--- t.jsonl", record, {**record, "id": "b", "extras": {"fails": True}})
    result = project.run("-rA", "--tb=native", "-Wdefault")
    check(result, "\\x2d-- b", "\\x2d-- t ", "\\x2b++ c", "\\x7e~~ d", "\\x5e^^ +++", "\\x74ravis_fold:start:a")
    heads = ("travis_", "--- ", "+++ ", "~~~ ", "^^^")
    assert [] == [line for line in result.outlines if line.startswith(heads)]


def test_what_programs_print_stands_behind_a_mark(hostile: Project) -> None:
    result = hostile.run("tasks/programs.jsonl", "-s")
    check(result, "  stdout:", "    | \\x3a:set-output name=a::b")


def test_an_error_in_a_fixture_gives_no_order(hostile: Project) -> None:
    hostile.write("conftest.py", CONFTEST.replace("@pytest.fixture\n", "@pytest.fixture(autouse=True)\n"))
    hostile.task("tasks/joined.jsonl", *[hostile.record(text, text) for text in JOINED])
    check(hostile.run("tasks/joined.jsonl", "-rA"), "ERROR at setup", "set-output")


def test_a_comparison_gives_no_order(hostile: Project) -> None:
    right = [{**hostile.record(text, text), "id": f"{number}{text}"} for number, text in enumerate(ORDERS)]
    hostile.task("tasks/turned.jsonl", *right)
    only = ("tasks/turned.jsonl", "tasks/wrong.jsonl", "--lm-gate=tasks")
    hostile.run(*only, "--lm-report-dir=before", "--lm-include-per-example")
    hostile.write("model.py", MODEL.replace("prompt.removeprefix", "'::error::b' + prompt.removeprefix"))
    result = hostile.run(*only[:2], "--lm-baseline=before/leaderboard.json", "-rA")
    assert 1 == result.ret
    check(result, "gate baseline: REGRESSION", "worse: turned: ")
    assert [] == commands_in((hostile.path / "summary.md").read_text())


@pytest.mark.parametrize("options", [[], ["-n2"], ["--lm-allow-bad-tasks"], ["--collect-only"]])
def test_bad_task_files_give_no_order(hostile: Project, options: list[str]) -> None:
    bad = [{**hostile.record(text, text), text: text} for text in ORDERS]
    hostile.task("tasks/bad.jsonl", hostile.record("fine", "fine"), *bad)
    hostile.write("tasks/bad.yaml", f"definition: {json.dumps(ORDERS[0])}\n{json.dumps(ORDERS[1])}: {{}}\n")
    body = f"print({ORDERS[0]!r})\nraise ValueError({ORDERS[0]!r})\n"
    hostile.write("tasks/task_bad.py", f"from pytest_lmeval.tasks import *\n{body}")
    check(hostile.run(*options, "-rA"), "set-output")


NAMES = ("::error file=a::x", "a\n::error::b/x", "##[group]x", "\x1b[2Jx", "\r::error::x", "\u202ex")


@pytest.mark.parametrize(
    ("folder", "options"),
    [
        (".", ["-v"]),
        pytest.param(".", ["-n2"], marks=pytest.mark.again),
        ("tasks", ["--collect-only", "-q"]),
        ("tasks", ["--lm-check-formatting"]),
    ],
)
def test_the_name_of_a_task_file_gives_no_order(
    project: Project, folder: str, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", *NAMES):
        project.task(f"tasks/{name}.jsonl", project.record("a", "a"))
    monkeypatch.chdir(project.path / folder)
    result = project.run(*options, f"--rootdir={project.path}", f"-c{project.path}/pytest.ini")
    assert 2 == result.ret
    check(result)
    # xdist's summary repeats them.
    times = 2 if "-n2" in options else 1
    assert times * len(NAMES) == result.stdout.str().count(": bad_value _file: the file's name contains")
    assert not set(result.stdout.str()) & {"\x1b", "\u202e"}


def test_usage_errors_give_no_order(hostile: Project) -> None:
    for options in (
        ["--lm-adapter=\n::error::b"],
        ["--lm-baseline=\n::error::b"],
        ["--lm-threshold=\n::error::b=0.5"],
        ["\n::error::b"],
        ["--lm-adapter=replay:r.jsonl"],
    ):
        hostile.write("r.jsonl", json.dumps({"id": "a", "output": 1, ORDERS[0]: 2, "x": ORDERS[1]}))
        result = hostile.run(*options)
        assert 4 == result.ret
        check(result)


def test_what_is_kept_says_what_was_said(hostile: Project) -> None:
    hostile.run("tasks/wrong.jsonl", "--lm-include-per-example")
    assert {f"wrong:{text}" for text in ORDERS} == hostile.examples().keys()
    outputs = [record["output"] for record in hostile.examples().values()]
    assert sorted(ORDERS) == sorted(outputs)
    assert Path(hostile.path / "summary.md").exists()


def test_what_plain_tests_print_stays_as_it_is(hostile: Project) -> None:
    hostile.write("test_plain.py", "def test_plain():\n    print('::error::mine')\n    assert False\n")
    assert ["::error::mine"] == commands_in(hostile.run_pytest("test_plain.py").stdout.str())
