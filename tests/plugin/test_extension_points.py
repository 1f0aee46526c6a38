"""What a project adds by hooks, entry points and pyproject.toml, by value."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import BOTH, Project
from tests.sources import source

OWN = """
def begins_with(prediction, targets, extras):
    return float(any(prediction.startswith(target) for target in targets)) * extras.get("weight", 1.0)

def after_colon(text):
    head, colon, tail = text.partition(":")
    return tail if colon else None

class Polite:
    name = "polite.v1"

    def __init__(self, greeting="hello"):
        self.greeting = greeting

    def generate(self, prompts):
        return [f"{self.greeting}: {prompt}" for prompt in prompts]

def pytest_lmeval_register(registry):
    registry.add_metric("begins_with", begins_with, threshold=0.5)
    registry.add_rule("after_colon", after_colon)
    registry.add_adapter("polite", lambda argument, **options: Polite(argument or "hello", **options))
"""


def own_records() -> list[dict[str, object]]:
    common = {"metric": "begins_with", "targets": ["hello"]}
    return [
        {"id": "whole", "prompt": "x", **common},
        {"id": "half", "prompt": "x", **common, "extras": {"weight": 0.5}},
        {"id": "after", "prompt": "hello x", **common, "extras": {"post_process": "after_colon"}},
    ]


def test_a_project_adds_a_metric_a_rule_and_an_adapter(project: Project) -> None:
    project.write("conftest.py", OWN)
    project.small_tasks()
    project.task("tasks/own.jsonl", *own_records())
    result = project.run_pytest("--lm-adapter=polite", "--lm-include-per-example", "tasks/own.jsonl")
    assert 1 == result.ret
    board = project.board()
    (row,) = board["tasks"]
    assert ("polite.v1", "begins_with", 0.5) == (board["adapter"], row["metric"], row["threshold"])
    scores = {id: record["score"] for id, record in project.examples().items()}
    assert {"own:whole": 1.0, "own:half": 0.5, "own:after": 0.0} == scores
    assert " x" not in project.examples()["own:after"]["prediction"][:1]


def test_a_sixth_task_of_its_own_stands_beside_the_others(project: Project) -> None:
    project.write("conftest.py", OWN)
    project.small_tasks()
    project.task("tasks/own.jsonl", {"id": "a", "prompt": "say: hello", "targets": ["he"], "metric": "begins_with"})
    project.run()
    assert ["arithmetic", "own", "words"] == [row["task"] for row in project.board()["tasks"]]
    project.run("-k", "begins_with").assert_outcomes(passed=1, deselected=5)


def test_an_adapter_gets_what_follows_its_colon_and_its_options(project: Project) -> None:
    project.write("conftest.py", OWN)
    project.task("tasks/t.jsonl", {"id": "a", "prompt": "x", "targets": ["good day: x"], "metric": "exact_match"})
    project.run_pytest("--lm-adapter=polite:good day").assert_outcomes(passed=1)


def test_a_misspelt_adapter_lists_the_registered_one_among_the_choices(project: Project) -> None:
    project.write("conftest.py", OWN)
    project.small_tasks()
    result = project.run_pytest("--lm-adapter=polit")
    assert 4 == result.ret
    result.stderr.fnmatch_lines(["*polit*did you mean 'polite'*"])


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("registry.add_metric('f1', None)", "'f1' is registered already"),
        ("registry.add_metric(1 / 0, None)", "ZeroDivisionError"),
    ],
)
def test_a_registration_that_fails_says_why(project: Project, line: str, wanted: str) -> None:
    project.write("conftest.py", f"def pytest_lmeval_register(registry):\n    {line}\n")
    project.small_tasks()
    result = project.run()
    assert result.ret not in (0, 1, 5)
    assert wanted in result.stdout.str() + result.stderr.str()
    assert [] == project.calls()


def test_plugins_of_the_project_file_are_registered(project: Project) -> None:
    (project.path / "pytest.ini").unlink()
    project.write("pyproject.toml", '[tool.lmeval]\nplugins = ["our_evals"]\n[tool.pytest.ini_options]\n')
    project.write("our_evals.py", OWN)
    project.task("tasks/own.jsonl", *own_records())
    project.run_pytest("--lm-adapter=polite", "-n2").assert_outcomes(passed=2, failed=1)


LOAD = source("extension_points/pairs.py")
BY_HOOK = """
def pytest_lmeval_load_task(path):
    if path.name.startswith("pairs"):
        return read(path, path.read_bytes(), path.stem)
"""
BY_FORMAT = """
def pytest_lmeval_register(registry):
    registry.add_format(".pairs", lambda source, registry: read(source.path, source.data, source.name))
"""


@pytest.mark.parametrize(
    ("where", "option"),
    [
        ("conftest.py", "--collect-only"),
        ("conftest.py", "--lm-adapter=model:Model"),
        ("other/conftest.py", "--lm-adapter=model:Model"),
        ("plugins", "--lm-adapter=model:Model"),
    ],
)
def test_a_named_folder_is_searched_for_files_of_a_registered_format(project: Project, where: str, option: str) -> None:
    name = "pairs_plugin.py" if where == "plugins" else where
    project.write(name, LOAD + BY_FORMAT)
    if where == "plugins":
        project.write("pyproject.toml", '[tool.lmeval]\nplugins = ["pairs_plugin"]\n')
    project.write("other/deep/own.pairs", "say: a -> a\nsay: b -> b\n")
    project.write("other/a.txt", "say: a -> a\n")
    project.task("other/words.jsonl", project.record("a", "x"))
    result = project.run_pytest(option, "-v", "other")
    assert 0 == result.ret
    assert ["p1", "p2"] == sorted(set(re.findall(r"\bp\d\b", result.stdout.str())))
    result.stdout.fnmatch_lines(["*collected 3 items*"])


@pytest.mark.parametrize("folder", ["tasks", "other"])
def test_a_file_whose_format_is_registered_too_late_is_named(project: Project, folder: str) -> None:
    project.write(f"{folder}/deep/conftest.py", LOAD + BY_FORMAT)
    project.write(f"{folder}/deep/own.pairs", "say: a -> a\n")
    project.task(f"{folder}/words.jsonl", project.record("a", "x"))
    result = project.run(folder)
    reason = "its format was registered after the first task file was found; register it in a conftest.py above both"
    assert f"not a task: {folder}/deep/own.pairs ({reason})" in result.outlines


def test_workers_search_a_named_folder_for_files_of_a_registered_format(project: Project) -> None:
    project.write("conftest.py", LOAD + BY_FORMAT)
    project.write("other/own.pairs", "say: a -> a\nsay: c -> d\n")
    project.task("other/words.jsonl", project.record("a", "x"))
    assert 1 == project.run("-n2", "other").ret
    assert (3, 3) == (project.board()["counts"]["collected"], project.board()["counts"]["scored"])


@pytest.mark.parametrize(("hook", "file"), [(BY_HOOK, "tasks/pairs.jsonl"), (BY_FORMAT, "tasks/deep/own.pairs")])
def test_a_project_reads_files_of_its_own(project: Project, hook: str, file: str) -> None:
    project.write("conftest.py", LOAD + hook)
    project.write(file, "say: a -> a\nsay: b -> b\nsay: c -> d\n")
    project.task("tasks/words.jsonl", project.record("a", "x"))
    result = project.run("--lm-batch-size=2")
    assert 1 == result.ret
    result.assert_outcomes(passed=3, failed=1)
    board = project.board()
    assert board["complete"]
    assert (4, 4) == (board["counts"]["collected"], board["counts"]["scored"])
    assert 3 == len(project.calls())
    result.stdout.fnmatch_lines([f"*FAILED {file}::p3*"])


def test_bad_records_of_files_of_its_own_stop_the_run(project: Project) -> None:
    project.write("conftest.py", LOAD + BY_FORMAT)
    project.write("tasks/own.pairs", "say: a -> a\nno arrow\n")
    project.task("tasks/words.jsonl", project.record("a", "x"))
    result = project.run("--continue-on-collection-errors")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*tasks/own.pairs:2: bad_value _line: no arrow*"])
    assert [] == project.calls()


@pytest.mark.parametrize(("hook", "file"), [(BY_HOOK, "tasks/pairs.jsonl"), (BY_FORMAT, "tasks/own.pairs")])
def test_a_task_of_its_own_that_lacks_a_member_stops_the_run_and_is_told(
    project: Project, hook: str, file: str
) -> None:
    project.write("conftest.py", LOAD.replace("def scoring(", "def scores_with(") + hook)
    project.write(file, "say: a -> a\n")
    project.task("tasks/words.jsonl", project.record("a", "x"))
    result = project.run("--continue-on-collection-errors")
    assert 2 == result.ret
    result.stdout.fnmatch_lines([f"*{file}: the task '*' (Pairs) has no scoring; a task needs name, path, sha256, *"])
    assert [] == project.calls()


OPTIONAL = """
    random_baseline: float = 0.5
    aggregates: bool = True

    def aggregate(self, results):
        return {"metrics": {"answers": float(len(results))}, "notes": {}}
"""


def test_a_task_of_its_own_may_have_some_of_the_optional_members(project: Project) -> None:
    conftest = LOAD.replace("\n\n    def requests", f"\n{OPTIONAL}\n    def requests") + BY_HOOK
    project.write("conftest.py", conftest)
    project.write("tasks/pairs.jsonl", "say: a -> a\nsay: b -> b\n")
    project.run().assert_outcomes(passed=2)
    (row,) = project.board()["tasks"]
    assert (1.0, 2.0) == (row["metrics"]["centered"], row["metrics"]["answers"])


FAILING_LOADER = """
def pytest_lmeval_load_task(path):
    if path.name == "words.jsonl":
        raise OSError("share is gone")
"""


def test_a_loader_that_fails_is_a_collection_error_before_any_call(project: Project) -> None:
    project.write("conftest.py", FAILING_LOADER)
    project.small_tasks()
    result = project.run("--continue-on-collection-errors")
    assert 2 == result.ret
    result.stdout.fnmatch_lines(["*share is gone*"])
    assert [] == project.calls()


SEEN = """
import json

def pytest_lmeval_leaderboard(config, leaderboard):
    with open("seen.txt", "a") as file:
        is_worker = hasattr(config, "workerinput")
        file.write(json.dumps([leaderboard.complete, leaderboard.overall_score, is_worker]) + "\\n")
"""


@pytest.mark.parametrize("processes", BOTH)
def test_the_finished_board_is_shown_once_to_the_project(project: Project, processes: str) -> None:
    project.write("conftest.py", SEEN)
    project.small_tasks()
    project.run(processes)
    (seen,) = [json.loads(line) for line in (project.path / "seen.txt").read_text().splitlines()]
    assert [True, project.board()["overall_score"], False] == seen


def test_a_project_that_chokes_on_the_board_does_not_lose_it(project: Project) -> None:
    project.write("conftest.py", "def pytest_lmeval_leaderboard(leaderboard):\n    raise OSError('no upload')\n")
    project.small_tasks()
    result = project.run("tasks/words.jsonl")
    assert 0 != result.ret
    assert "no upload" in result.stdout.str() + result.stderr.str()
    assert project.board()["complete"]


ODD_METRICS = """
import math

class Half(float):
    pass

ODD = {
    "nan": math.nan, "inf": math.inf, "above": 1.5, "below": -0.1, "text": "1.0", "none": None, "list": [1.0],
    "true": True, "subclass": Half(0.5), "integer": 1,
}

def pytest_lmeval_register(registry):
    for name, value in ODD.items():
        registry.add_metric(f"gives_{name}", lambda prediction, targets, extras, value=value: value, threshold=0.0)

    def raises(prediction, targets, extras):
        raise KeyError("\\ud800 oops")

    registry.add_metric("gives_error", raises)
"""


def test_what_is_no_score_is_an_error_of_its_example(project: Project) -> None:
    project.write("conftest.py", ODD_METRICS)
    kinds = ["nan", "inf", "above", "below", "text", "none", "list", "error", "true", "subclass", "integer"]
    for kind in kinds:
        project.task(f"tasks/{kind}.jsonl", project.record("a", "x", metric=f"gives_{kind}"))
    result = project.run("--lm-include-per-example")
    assert 3 == result.ret
    assert "INTERNALERROR" not in result.stdout.str()
    scores = {id.removesuffix(":a"): record["score"] for id, record in project.examples().items()}
    expected = {**dict.fromkeys(kinds[:8]), "true": 1.0, "subclass": 0.5, "integer": 1.0}
    assert expected == scores
    errors = project.examples()
    for kind in kinds[:8]:
        assert f"gives_{kind}" in errors[f"{kind}:a"]["error"]
    assert 8 == project.board()["counts"]["errors"]


COUNTED = """
import importlib.metadata
import os

original = importlib.metadata.entry_points


def entry_points(**selected):
    with open(os.path.join(os.path.dirname(__file__), "scans.txt"), "a") as file:
        file.write(f"{os.getpid()}\\n")
    return original(**selected)


importlib.metadata.entry_points = entry_points


def pytest_lmeval_register(registry):
    registry.add_metric("own", lambda prediction, targets, extras: 1.0)
"""


@pytest.mark.parametrize("processes", ["-n0", "-n2"])
def test_a_process_looks_through_the_installed_packages_once(project: Project, processes: str) -> None:
    project.write("conftest.py", COUNTED)
    project.write("tasks/conftest.py", "def pytest_lmeval_register(registry):\n    registry.add_rule('own', str)\n")
    project.task("tasks/t.jsonl", project.record("a", "x", metric="own", post_process="own"))
    assert 0 == project.run(processes).ret
    scans = (project.path / "scans.txt").read_text().split()
    assert sorted(set(scans)) == sorted(scans)
    assert len(scans) == {"-n0": 1, "-n2": 3}[processes]


@pytest.mark.parametrize("how", ["the conftest itself", "a module that it imports"])
def test_what_a_conftest_and_pyproject_both_name_is_registered_once(project: Project, how: str) -> None:
    register = (
        "def pytest_lmeval_register(registry):\n    registry.add_metric('own', lambda said, targets, extras: 1.0)\n"
    )
    project.write("own_evals.py", register)
    project.write("conftest.py", register if how == "the conftest itself" else "from own_evals import *\n")
    module = "conftest" if how == "the conftest itself" else "own_evals"
    project.write("pyproject.toml", f'[tool.lmeval]\nplugins = ["{module}"]\n')
    project.task("tasks/t.jsonl", project.record("a", "x", metric="own"))
    assert 0 == project.lmeval("validate", "tasks").ret
    project.run().assert_outcomes(passed=1)
