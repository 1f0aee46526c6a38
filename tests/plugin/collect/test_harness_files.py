"""Task files of lm-evaluation-harness in a run: the session of their page, and how items are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Project, RunModule
from tests.sources import PROJECTS
from tests.tutorials import Tutorial

PAGE = Path(__file__).parents[3] / "docs" / "harness-tasks.md"


@pytest.fixture
def harness(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.path / "cache"))
    project.copy("harness")
    return project


def test_the_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [0, 1, 0] == Tutorial(PAGE, PROJECTS / "harness").codes(tmp_path / "project", run_module)


def test_items_are_found_by_group_tag_and_output_type(harness: Project) -> None:
    harness.run("tasks", "-kloglikelihood_rolling")
    assert ["pages"] == [row["task"] for row in harness.board()["tasks"]]


def test_a_group_and_its_metrics_are_on_the_board_and_in_markdown(harness: Project) -> None:
    harness.run("tasks")
    board = harness.board()
    assert {"value": 5 / 6, "n": 6} == {
        key: board["groups"]["words"]["metrics"]["acc,none"][key] for key in ("value", "n")
    }
    text = (harness.path / "reports" / "leaderboard.md").read_text()
    assert "| words | acc | 0.8333 | 0.1443 | 6 |" in text
    assert "| pages | bits\\_per\\_byte ↓ | 0.3040 | - | 2 |" in text


def test_a_file_of_several_tasks_is_read_once_more_for_their_metrics(harness: Project) -> None:
    harness.write(
        "conftest.py", "def pytest_lmeval_load_task(path):\n    print(path.name, file=open('read.txt', 'a'))\n"
    )
    harness.run("tasks")
    assert ["reasoning.yaml"] * 2 == (harness.path / "read.txt").read_text().split()


SEVERAL = """
harness:
  from: ../theirs
  tasks: [capitals, {group: words, task: [plurals, sounds], aggregate_metric_list: [{metric: acc}]}]
  data: ../data
  examples:
    capitals.2: {quarantine: {until: "2999-01-01", reason: the border moves}}
    sounds.1: {must_pass: true}
"""
WEAK = """

class Weak(Model):
    name = "weak.v1"

    def one(self, request):
        return LogProb(-1.0) if "Spain" in request.context else super().one(request)
"""


def test_tasks_have_several_models_a_cache_and_what_single_examples_tell_the_gate(harness: Project) -> None:
    harness.write("tasks/reasoning.yaml", SEVERAL)
    harness.write("model.py", (harness.path / "model.py").read_text() + WEAK)
    two = ("--lm-adapter=A=model:Model", "--lm-adapter=B=model:Weak", "--lm-cache=answers", "--lm-gate=tasks")
    first = harness.run_pytest("tasks", *two)
    first.assert_outcomes(passed=28, failed=4)
    board = harness.board("reports/A")
    assert [("capitals", "2", "the border moves")] == [
        (each["task"], each["id"], each["reason"]) for each in board["quarantined"]
    ]
    assert ["sounds: 1 must pass"] == [reason[:19] for reason in board["gate"]["reasons"]]
    assert 5 / 6 == board["groups"]["words"]["metrics"]["acc,none"]["value"]
    again = harness.run_pytest("tasks", *two)
    again.stdout.fnmatch_lines(["cache: 48 of 48 answer(s) found*"] * 2)
    assert board["digest"] == harness.board("reports/A")["digest"]


TOLD = """
task: told
dataset_path: made/told
test_split: test
doc_to_text: "say: {{said}}"
doc_to_target: "{{said}}"
repeats: 3
metric_list: [{metric: exact_match}]
"""
OWN = """
def test_own(lm):
    assert lm.ask("say: green").text == "green"
"""


def test_a_task_with_repeats_runs_beside_an_eval_function_and_refuses_those_of_a_run(project: Project) -> None:
    project.write("theirs/told.yaml", TOLD)
    project.write("data/made__told/test.jsonl", '{"said": "red"}\n')
    project.write("tasks/told.yaml", "harness: {from: ../theirs, tasks: [told], data: ../data}\n")
    project.write("tests/test_own.py", OWN)

    project.run("tasks", "tests").assert_outcomes(passed=2)
    assert {"told": 1.0, "tests/test_own": 1.0} == {row["task"]: row["score"] for row in project.board()["tasks"]}
    assert 4 == sum(len(prompts) for prompts in project.calls())
    refused = project.run("tasks", "--lm-repeats=2")
    assert "other repeats of their own: told (1)" in refused.stdout.str() + refused.stderr.str()
